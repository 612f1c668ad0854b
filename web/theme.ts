import { signal } from "@preact/signals"

type Theme = "light" | "dark"
const key = "tackle-theme"
const systemDark = matchMedia("(prefers-color-scheme: dark)")

/** The theme that the user chose. Undefined to follow the system. */
const chosen = signal<Theme | undefined>(readChoice())
const system = signal<Theme>(systemDark.matches ? "dark" : "light")

systemDark.addEventListener("change", ({ matches }) => {
  system.value = matches ? "dark" : "light"
})

function readChoice(): Theme | undefined {
  const stored = localStorage.getItem(key)
  return stored === "light" || stored === "dark" ? stored : undefined
}

/** Returns the theme that is shown. */
export function currentTheme(): Theme {
  return chosen.value ?? system.value
}

/** Applies the stored choice. */
export function applyTheme(): void {
  if (chosen.value) document.documentElement.dataset.theme = chosen.value
}

/** Switches between light and dark. A choice that matches the system theme is not stored. */
export function toggleTheme(): void {
  const next = currentTheme() === "dark" ? "light" : "dark"
  chosen.value = next === system.value ? undefined : next
  if (chosen.value) localStorage.setItem(key, chosen.value)
  else localStorage.removeItem(key)
  if (chosen.value) document.documentElement.dataset.theme = chosen.value
  else delete document.documentElement.dataset.theme
}
