import { expectTypeOf, test } from "vitest"
import type {
  Change,
  Layer,
  PromptFile,
  PromptOptions,
  SessionFilter,
  Store,
  TackleOptions,
} from "../src/index.ts"

test("exports every type of public signatures", () => {
  expectTypeOf<NonNullable<PromptOptions["files"]>[number]>().toEqualTypeOf<PromptFile>()
  expectTypeOf<NonNullable<TackleOptions["layers"]>[number]>().toEqualTypeOf<Layer>()
  expectTypeOf<Parameters<Store["commit"]>[0][number]>().toEqualTypeOf<Change>()
  expectTypeOf<NonNullable<Parameters<Store["sessions"]>[0]>>().toEqualTypeOf<SessionFilter>()
})
