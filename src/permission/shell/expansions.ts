import type { ShellNode } from "./parse.ts"

/**
 * Why an expansion may do more than look something up, or nothing. Whatever stands in its operand is held to the same:
 * expansions within it, and text that the grammar took for plain and a shell does not. `text` is the whole that the
 * node's positions are in.
 */
export function expansionFault(node: ShellNode, text: string): string | undefined {
  const source = text.slice(node.start, node.end).trimStart()
  if (!harmlessExpansion.test(source)) return `${source.slice(0, 40)} can do more than look up a value`
  const parts = partsOf(node)
  // What is left has no parts that the grammar knows to run: then nothing in it may look like one.
  let position = node.end - source.length + 1
  let plain = ""
  for (const part of parts) {
    plain += `${text.slice(position, part.start)} `
    position = part.end
  }
  plain += text.slice(position, node.end)
  if (/`|\$[\w({[@*#?!$'"-]|[<>=]\(/.test(plain.replaceAll(/\\./gs, ""))) {
    return `a part of ${source.slice(0, 40)} is not understood`
  }
  for (const part of parts) {
    const fault = partFault(part, text)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Why arithmetic may run commands, or nothing: names in it are evaluated, so only numbers pass. */
export function arithmeticFault(source: string): string | undefined {
  return /[^\s\d+*/%()$[\]-]/.test(source) ? "its arithmetic can run commands" : undefined
}

/** Forms of `${…}` that only look something up. Others can assign, evaluate or run. */
const harmlessExpansion = /^\$(?:\w+|[@*#?$!-]|\{#?\w+\}|\{\w+(?::?[-+]|%%?|##?|\/\/?).*\})$/s

const partTypes = new Set([
  "simple_expansion",
  "expansion",
  "arithmetic_expansion",
  "command_substitution",
  "process_substitution",
])

/** The outermost expansions and substitutions below a node. */
function partsOf(node: ShellNode): ShellNode[] {
  return node.children.flatMap((child) => (partTypes.has(child.type) ? [child] : partsOf(child)))
}

/** Commands of substitutions are followed elsewhere. */
function partFault(part: ShellNode, text: string): string | undefined {
  if (part.type === "arithmetic_expansion") return arithmeticFault(text.slice(part.start, part.end))
  return part.type.endsWith("substitution") ? undefined : expansionFault(part, text)
}
