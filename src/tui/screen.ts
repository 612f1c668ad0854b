import { once } from "node:events"
import {
  type Component,
  Container,
  ScrollView,
  type Terminal,
  type TUI,
  TuiAltScreen,
  TuiMainScreen,
  type TuiMainScreenRenderState,
  VStack,
} from "@earendil-works/pi-tui"

/** Content of the screen: the part that scrolls, and the part that stays at the bottom of the screen. */
export interface ScreenContent {
  main: Component
  bottom: readonly Component[]
  /**
   * Called when the user scrolls past the first line in full-screen mode. `lines` is the remaining distance, as a
   * negative number of lines.
   */
  onTop(lines: number): void
}

/** The terminal, with the interface on it. */
export interface Screen {
  readonly tui: TUI
  show(content: ScreenContent): void
  /**
   * Number of lines in the latest frame that are above the screen and cannot be changed without clearing everything.
   * The number is 0 in full-screen mode, and if the next frame clears everything anyway.
   */
  readonly linesAbove: number
  /**
   * Prepares the next frame, which omits the first `count` lines of the latest frame. Returns `kept` if these lines
   * remain in the terminal's scrollback, `gone` if they disappear above the visible part, and `needed` if the next
   * frame must contain them.
   */
  forgetLines(count: number): "kept" | "gone" | "needed"
  /**
   * In full-screen mode, scrolls down, or up if `lines` is negative. Otherwise, returns false, because the terminal
   * itself scrolls.
   */
  scrollBy(lines: number): boolean
  /**
   * In full-screen mode, scrolls down by a page, or up if `direction` is -1. Otherwise, returns false, because the
   * terminal itself scrolls.
   */
  scrollPage(direction: -1 | 1): boolean
  start(): void
  /**
   * Restores the terminal and stops this process with its process group, as Ctrl+Z does in a shell. When the user
   * continues the process, calls `onContinue` and draws a frame below the text that the terminal then shows.
   */
  suspend(onContinue: () => void): Promise<void>
  /** Removes the lines at the bottom, so that only the conversation remains in the terminal's scrollback. */
  removeBottom(): void
  /**
   * Restores the terminal. Returns the state from which the next screen that is not full-screen continues. Set `keep`
   * if another screen follows. If the screen is not active, does nothing and returns undefined.
   */
  stop(options?: { keep?: boolean }): TuiMainScreenRenderState | undefined
}

/** Sequences that make the terminal report when its window gets or loses the focus. */
const focusReports = { on: "\u001b[?1004h", off: "\u001b[?1004l" }

/**
 * Creates a screen. By default, the conversation is part of the terminal's own scrollback. With `fullscreen`, the
 * interface uses the alternate screen and scrolls by itself. `drawn` is the state that an earlier screen returned from
 * `stop`. The lines of that screen are not drawn again.
 */
export function createScreen(
  terminal: Terminal,
  { fullscreen, drawn }: { fullscreen: boolean; drawn?: TuiMainScreenRenderState | undefined },
): Screen {
  const tui = fullscreen ? new FullScreen(terminal) : new TuiMainScreen(terminal)
  let isStarted = false
  let scroll: ScrolledMain | undefined
  let bottomLines: Container | undefined

  function scrollBy(lines: number): boolean {
    scroll?.scrollBy(lines)
    tui.requestRender()
    return scroll !== undefined
  }

  return {
    tui,
    get linesAbove() {
      if (!(tui instanceof TuiMainScreen)) return 0
      const { previousWidth, previousHeight, previousViewportTop } = tui.captureRenderState()
      const isSameSize = previousWidth === terminal.columns && previousHeight === terminal.rows
      return isSameSize ? previousViewportTop : 0
    },
    forgetLines(count) {
      if (!(tui instanceof TuiMainScreen)) return scroll?.isFollowingEnd ? "gone" : "needed"
      const state = tui.captureRenderState()
      const previousLines = state.previousLines.slice(count)
      // The renderer cannot restore a state that contains images.
      if (count > state.previousViewportTop || previousLines.some(isImage)) return "needed"
      tui.restoreRenderState({
        ...{ ...state, previousLines },
        cursorRow: state.cursorRow - count,
        hardwareCursorRow: state.hardwareCursorRow - count,
        maxLinesRendered: state.maxLinesRendered - count,
        previousViewportTop: state.previousViewportTop - count,
      })
      return "kept"
    },
    scrollBy,
    scrollPage: (direction) => scrollBy(direction * Math.max(1, (scroll?.viewportHeight ?? 0) - 2)),
    show({ main, bottom, onTop }) {
      const below = new Container()
      for (const component of bottom) below.addChild(component)
      if (tui instanceof TuiAltScreen) {
        scroll = new ScrolledMain(main, { follow: "end", primary: true, overscroll: "chain" })
        scroll.onTop = onTop
        tui.setLayoutRoot(
          new VStack([
            { component: scroll, basis: 0, grow: 1, minSize: 1 },
            { component: below, basis: "auto", shrink: 1, minSize: 1 },
          ]),
        )
        return
      }
      bottomLines = below
      tui.addChild(main)
      tui.addChild(below)
    },
    start() {
      isStarted = true
      if (drawn && tui instanceof TuiMainScreen) tui.restoreRenderState(drawn)
      tui.start()
      terminal.write(focusReports.on)
    },
    async suspend(onContinue) {
      terminal.write(focusReports.off)
      tui.stop()
      const continued = once(process, "SIGCONT")
      // Without this timer, the process could exit, because nothing else keeps it running.
      const alive = setInterval(() => {}, 60_000)
      process.kill(0, "SIGTSTP")
      await continued
      clearInterval(alive)
      if (tui instanceof TuiMainScreen) tui.restoreRenderState(nothingDrawn)
      tui.start()
      terminal.write(focusReports.on)
      onContinue()
      // A frame that was requested in the meantime would block all later frames.
      tui.renderNow()
    },
    removeBottom() {
      if (!bottomLines || !isStarted) return
      tui.removeChild(bottomLines)
      tui.renderNow()
    },
    stop({ keep = false } = {}) {
      if (!isStarted) return undefined
      isStarted = false
      const state = tui instanceof TuiMainScreen ? tui.captureRenderState() : drawn
      terminal.write(focusReports.off)
      tui.stop({ preserveScreen: keep })
      return state
    },
  }
}

/** The alternate screen. Its focus reports also reach other listeners. */
class FullScreen extends TuiAltScreen {
  private readonly isCreated = true

  override addInputListener(listener: (data: string) => TuiInputResult): () => void {
    if (this.isCreated) return super.addInputListener(listener)
    // The library's own listener, which is added first, would consume focus reports.
    return super.addInputListener((data) => {
      const result = listener(data)
      return data === "\u001b[I" || data === "\u001b[O" ? undefined : result
    })
  }
}

type TuiInputResult = ReturnType<Parameters<TUI["addInputListener"]>[0]>

/** The part of the alternate screen that the mouse wheel and keys scroll. */
class ScrolledMain extends ScrollView {
  onTop?: (lines: number) => void

  override scrollBy(lines: number): number {
    const left = super.scrollBy(lines)
    if (left < 0) this.onTop?.(left)
    return left
  }
}

/** The state of a main screen before its first frame. */
const nothingDrawn: TuiMainScreenRenderState = {
  ...{ previousLines: [], previousWidth: 0, previousHeight: 0, previousViewportTop: 0 },
  ...{ cursorRow: 0, hardwareCursorRow: 0, maxLinesRendered: 0 },
}

/** Returns true for lines that contain images in the protocols of Kitty and iTerm2. */
function isImage(line: string): boolean {
  return line.includes("\u001b_G") || line.includes("\u001b]1337;File=")
}
