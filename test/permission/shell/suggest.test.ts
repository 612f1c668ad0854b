import { expect, test } from "vitest"
import { planCommand } from "../../../src/permission/shell/plan.ts"
import { rememberedPattern } from "../../../src/permission/shell/suggest.ts"

test.each([
  ["git push origin main", "git push *"],
  ["npm run build -- --watch", "npm run build *"],
  ["npm test", "npm test *"],
  ["docker compose up -d", "docker compose up *"],
  ["make", "make *"],
  ["eslint src", "eslint *"],
  ["git -C sub push", "git -C sub push"],
  ["rm -r build", "rm -r build"],
  ["sudo make", "sudo make"],
  ["python x.py", "python x.py"],
  ["./gradlew build", "./gradlew build"],
  ["rm *.tmp", undefined],
  ["rm './*.tmp'", undefined],
  ["npm run $x", undefined],
  ["git commit -m 'a b'", "git commit *"],
  ["$x y", undefined],
  ["CI=1 npm test", "npm test *"],
  ["A=b npm test", "A=b npm test *"],
  ["A='b c' npm test", undefined],
  ["npm te\u200bst", undefined],
])("%s is remembered as %s", async (text, expected) => {
  const [command] = (await planCommand(text)).commands
  expect(command && rememberedPattern(command)).toBe(expected)
})
