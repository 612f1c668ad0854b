import { isRecord } from "../util/json.ts"
import { type ConfigNode, nodeAt, type Path } from "./node.ts"
import { configJsonSchema } from "./schema.ts"

/** What the schema says of one place of a config file. */
export interface SchemaAt {
  description?: string
  /** The keys of an object there. Of several shapes those of the one that the file has. */
  keys: string[]
  /** Keys below these, by the key that holds them. */
  below: Map<string, string[]>
}

/** Looks the path up in the JSON Schema, beside the tree that is checked. */
export function schemaAt(tree: ConfigNode, path: Path): SchemaAt {
  let shapes = [configJsonSchema()]
  for (const [depth, step] of path.entries()) {
    const node = nodeAt(tree, path.slice(0, depth))
    shapes = shapes.flatMap((shape) => shapesOf(shape, node)).flatMap((shape) => childrenOf(shape, step))
  }
  const description = shapes.map((shape) => shape.description).find((text) => typeof text === "string")
  const properties = shapes.flatMap((shape) => shapesOf(shape, nodeAt(tree, path))).flatMap(propertiesOf)
  const below = properties.map(
    ([key, shape]) =>
      [
        key,
        shapesOf(shape, undefined)
          .flatMap(propertiesOf)
          .map(([name]) => name),
      ] as const,
  )
  return {
    ...(description === undefined ? {} : { description }),
    keys: [...new Set(properties.map(([key]) => key))],
    below: new Map(below),
  }
}

type Shape = Record<string, unknown>

/** The alternatives of a shape, without those that the node's own words exclude, such as its `type`. */
function shapesOf(shape: Shape, node: ConfigNode | undefined): Shape[] {
  const choices = [shape.anyOf, shape.oneOf, shape.allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  if (choices.length === 0) return [shape]
  const all = choices.filter(isRecord).flatMap((choice) => shapesOf(choice, node))
  const fitting = all.filter((choice) =>
    propertiesOf(choice).every(([key, value]) => agrees(value, nodeAt(node, [key]))),
  )
  return fitting.length > 0 ? fitting : all
}

function agrees(shape: Shape, node: ConfigNode | undefined): boolean {
  return node?.kind !== "scalar" || shape.const === undefined || shape.const === node.value
}

function propertiesOf(shape: Shape): [string, Shape][] {
  if (!isRecord(shape.properties)) return []
  return Object.entries(shape.properties).flatMap(([key, value]) => (isRecord(value) ? [[key, value]] : []))
}

function childrenOf(shape: Shape, step: string | number): Shape[] {
  const own = propertiesOf(shape).find(([key]) => key === step)?.[1]
  return [own ?? shape.additionalProperties ?? shape.items].filter(isRecord)
}
