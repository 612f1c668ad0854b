import { expect, test } from "vitest"
import { anchorGlob, compileGlob, nameGlob } from "../../../src/tools/search/glob-pattern.ts"

test.each([
  ["*.ts", "a.ts", true],
  ["*.ts", "src/a.ts", true],
  ["*.ts", ".a.ts", true],
  ["/*.ts", "src/a.ts", false],
  ["./*.ts", "a.ts", true],
  ["src/*.ts", "src/x/a.ts", false],
  ["src/**", "src/.x/a.ts", true],
  ["**/a.ts", "a.ts", true],
  ["src/", "src/x/a.ts", true],
  ["*.{ts}", "a.ts", true],
  ["*.{ts,js}", "a.js", true],
  ["[ab].ts", "b.ts", true],
  ["[id].ts", "[id].ts", true],
  ["(x)/*.ts", "(x)/a.ts", true],
  ["a?.ts", "ab.ts", true],
  ["*.ts", "a\nb.ts", true],
  ["**/*.ts", "x\ny/a.ts", true],
  ["!*.ts", "a.js", true],
  ["!*.ts", "src/a.ts", false],
])("%j and %j: %s", (glob, path, expected) => {
  expect(compileGlob(glob)(path)).toBe(expected)
})

test.each([
  ["src/*.ts", { directory: "/work", glob: "src/*.ts" }],
  ["/etc/*.conf", { directory: "/etc", glob: "/*.conf" }],
  ["../lib/**/*.{a,b}", { directory: "/lib", glob: "/**/*.{a,b}" }],
  ["/etc/hosts", { directory: "/etc", glob: "/hosts" }],
  ["..", { directory: "/", glob: "/" }],
  ["..hidden/*", { directory: "/work", glob: "..hidden/*" }],
])("%j leads to %j", (glob, expected) => {
  expect(anchorGlob(glob, "/work")).toEqual(expected)
})

test.each([
  ["*.ts", "*.ts"],
  ["src/**/*.{ts,tsx}", "*.{ts,tsx}"],
  ["**", undefined],
  ["{src/a,b}.ts", undefined],
  ["!*.ts", undefined],
  ["*.[jt]s", undefined],
  ["@(a|b).ts", undefined],
])("the file names of %j fit %j", (glob, expected) => {
  expect(nameGlob(glob)).toBe(expected)
})
