/** The permission type that stands for a tool: most have their own id. */
export function permissionOf(id: string): string {
  return permissions[id] ?? id
}

const permissions: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  write: "edit",
  apply_patch: "edit",
  todowrite: "todo",
  todoread: "todo",
})
