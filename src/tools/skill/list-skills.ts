import type { Skill } from "../../skill/skill.ts"

/** As much of a description is listed, in characters. The format allows 1024, which is too much for every request. */
const maxDescription = 300
/** Characters of the list up to which skills are listed with their descriptions, and those up to which they are named. */
const maxDescribed = 6_000
const maxNamed = 8_000

/** A line for each skill. What does not fit is named alone, and then counted: the list goes with every request. */
export function listSkills(skills: readonly Skill[]): string {
  const lines: string[] = []
  let length = 0
  for (const { name, description } of skills) {
    const whole = `- ${name}: ${cut(description)}`
    const line = length + whole.length <= maxDescribed ? whole : `- ${name}`
    if (length + line.length > maxNamed) break
    lines.push(line)
    length += line.length + 1
  }
  const left = skills.length - lines.length
  return (left > 0 ? [...lines, `- and ${left} more, which the user has to name`] : lines).join("\n")
}

function cut(text: string): string {
  return text.length > maxDescription ? `${text.slice(0, maxDescription - 1).toWellFormed()}…` : text
}
