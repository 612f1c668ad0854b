/** Generates `docs/api.md` from the OpenAPI document. A test fails if the file is out of date. */
import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { apiPage } from "./api-page.ts"

writeFileSync(resolve(import.meta.dirname, "../docs/api.md"), apiPage())
