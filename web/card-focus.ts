/** Returns true if the focused field contains text. In this case, nothing else may take the focus. */
export function isWriting(): boolean {
  const active = document.activeElement
  return (
    (active instanceof HTMLTextAreaElement || active instanceof HTMLInputElement) &&
    active.value.trim() !== ""
  )
}

/** Moves the focus from an answered card to the message box, unless another card is open. */
export function leaveCard(inside: Element | null): void {
  const own = inside?.closest(".card")
  const others = [...document.querySelectorAll(".card")].filter((card) => card !== own)
  if (others.length === 0) focusMessageBox()
}

/** Moves the focus to the message box, except on a touch screen, where this would open the keyboard. */
export function focusMessageBox(): void {
  if (matchMedia("(pointer: fine)").matches)
    document.getElementById("message-box")?.focus({ preventScroll: true })
}
