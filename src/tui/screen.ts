import {
  type Component,
  Container,
  ScrollView,
  type Terminal,
  type TUI,
  TuiAltScreen,
  TuiMainScreen,
  VStack,
} from "@earendil-works/pi-tui"

/** Content of the screen: the part that scrolls, and the part that stays at the bottom. */
export interface ScreenContent {
  main: Component
  bottom: readonly Component[]
}

/** The terminal, with the interface on it. */
export interface Screen {
  readonly tui: TUI
  show(content: ScreenContent): void
  start(): void
  /** Restores the terminal. Can be called more than once. */
  stop(): void
}

/** Sequences that make the terminal report when its window gets or loses the focus. */
const focusReports = { on: "\u001b[?1004h", off: "\u001b[?1004l" }

/**
 * Creates a screen. By default, the conversation is part of the terminal's own scrollback. With `fullscreen`, the
 * interface uses the alternate screen and scrolls by itself.
 */
export function createScreen(terminal: Terminal, { fullscreen }: { fullscreen: boolean }): Screen {
  const tui = fullscreen ? new TuiAltScreen(terminal) : new TuiMainScreen(terminal)
  let isStarted = false

  return {
    tui,
    show({ main, bottom }) {
      const below = new Container()
      for (const component of bottom) below.addChild(component)
      if (tui instanceof TuiAltScreen) {
        const scroll = new ScrollView(main, { follow: "end", primary: true, overscroll: "chain" })
        tui.setLayoutRoot(
          new VStack([
            { component: scroll, basis: 0, grow: 1, minSize: 1 },
            { component: below, basis: "auto", shrink: 1, minSize: 1 },
          ]),
        )
        return
      }
      tui.addChild(main)
      tui.addChild(below)
    },
    start() {
      isStarted = true
      tui.start()
      terminal.write(focusReports.on)
    },
    stop() {
      if (!isStarted) return
      isStarted = false
      terminal.write(focusReports.off)
      tui.stop()
    },
  }
}
