/** Paths of 16 × 16 icons that are drawn as lines. */
const paths = {
  add: "M8 3v10M3 8h10",
  agent: "M4.5 6.5h7v6h-7zM8 6.5V4M8 4h.01M6.5 9h.01M9.5 9h.01",
  attach: "M13 7.5 7.8 12.7a3 3 0 0 1-4.3-4.2l5.6-5.6a2 2 0 0 1 2.9 2.8l-5.5 5.5a1 1 0 0 1-1.5-1.4l4.8-4.8",
  back: "M10 3 5 8l5 5",
  check: "m3 8.5 3.2 3L13 4.5",
  close: "m4 4 8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM3.5 10H3V3h7v.5",
  down: "m4 6 4 4 4-4",
  edit: "m3 13 .6-2.9L10.8 3 13 5.2 5.9 12.4z",
  error: "M8 4.5v4M8 11.2v.1M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8",
  file: "M4 1.8h5.2L12.5 5v9.2H4zM9 2v3.3h3.3",
  fork: "M5 3v10M5 9c0-3 6-1 6-5M11 4h.01M5 3h.01M5 13h.01",
  help: "M6.2 6a1.9 1.9 0 1 1 2.6 1.8c-.6.3-.8.7-.8 1.3M8 11.3v.1M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8",
  list: "M3 4h10M3 8h10M3 12h10",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  refused: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M3.8 3.8l8.4 8.4",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3 13.5 13.5",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  shield: "M8 1.8 13 3.5v4c0 3.2-2.1 5.6-5 6.7-2.9-1.1-5-3.5-5-6.7v-4z",
  stop: "M4.5 4.5h7v7h-7z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  undo: "M6 3 3 6l3 3M3 6h6a4 4 0 0 1 0 8H6",
  redo: "m10 3 3 3-3 3M13 6H7a4 4 0 0 0 0 8h3",
  up: "m4 10 4-4 4 4",
  warning: "M8 2.5 14 13H2zM8 6.5v3M8 11.3v.1",
} as const

/** Name of an icon. */
export type IconName = keyof typeof paths

/** An icon that screen readers ignore. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}

/** A spinning ring. */
export function Spinner() {
  return <span class="spinner" aria-hidden="true" />
}

/** The Tackle logo. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M9 11h14M16 11v12" />
    </svg>
  )
}
