import { errorMessage } from "../../src/util/errors.ts"
import { testDispatcher } from "../suites/dispatcher.ts"
import { createInProcessDispatcher } from "./in-process.ts"

testDispatcher("in-process", async () => {
  const problems: string[] = []
  const dispatcher = createInProcessDispatcher({
    onProblem: (message, error) => problems.push(`${message}: ${errorMessage(error)}`),
  })
  return { problems, open: async () => dispatcher, close: () => dispatcher.close() }
})
