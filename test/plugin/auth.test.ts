import { stat } from "node:fs/promises"
import { expect, test } from "vitest"
import { type AuthMethod, openSignInPage, readAuthHook, signInByKey } from "../../src/plugin/auth.ts"
import { run } from "../session/run.ts"
import { startPluginEngine } from "./engine.ts"

const signedIn = {
  type: "oauth",
  access: "access-token",
  refresh: "refresh-token",
  expires: 4_000_000_000_000,
}

test("passes the loader's options to the provider's package after signing in", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async ({ client }) => ({ auth: {
        provider: "test",
        methods: [{ type: "api", label: "Key" }],
        loader: async (getAuth, provider) => {
          const { access } = await getAuth()
          await client.auth.set({ path: { id: "test" }, body: { ...(await getAuth()), access: "renewed-token" } })
          return { apiKey: access, headers: { "x-provider": provider.id } }
        },
      } })`,
    },
    script: [{ text: "One." }, { text: "Two." }],
  })
  expect(engine.tackle.signIns()).toMatchObject([{ provider: "test", methods: [{ label: "Key" }] }])
  await engine.tackle.credentials.save("test", signedIn)
  const { end } = await run(engine)
  expect(end.text).toBe("One.")
  const { headers } = engine.server.requests[0] ?? {}
  expect(headers).toMatchObject({ authorization: "Bearer access-token", "x-provider": "test" })

  const path = engine.project.path(".data/auth.json")
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(JSON.parse(await engine.project.read(".data/auth.json"))).toEqual({
    test: { ...signedIn, access: "renewed-token" },
  })
  await engine.tackle.credentials.save("test", undefined)
  expect(await engine.tackle.credentials.providers()).toEqual([])
})

test("uses the config's options without a sign-in and if the loader fails", async () => {
  const files = {
    "a.mjs": `export default async () => ({ auth: {
      provider: "test", methods: [], loader: async () => { throw new Error("no luck") } } })`,
  }
  await using engine = await startPluginEngine({ files })
  expect((await run(engine)).end.text).toBe("Done.")
  expect(engine.problems).toEqual([])

  await using other = await startPluginEngine({ files })
  await other.tackle.credentials.save("test", signedIn)
  expect((await run(other)).end.text).toBe("Done.")
  expect(other.server.requests[0]?.headers.authorization).toBe("Bearer k")
  expect(other.problems).toEqual([expect.stringContaining("no luck")])
})

test("hides a token that a plugin stores during a run", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async ({ client }) => ({ auth: { provider: "test", methods: [],
        loader: async (getAuth) => {
          await client.auth.set({ path: { id: "test" }, body: { ...(await getAuth()), access: "renewed-token" } })
          return {}
        } } })`,
    },
    script: [{ text: "It is renewed-token now." }],
  })
  await engine.tackle.credentials.save("test", signedIn)
  expect((await run(engine)).end.text).toBe("It is [secret test access key] now.")
})

test("uses neither plugin options nor stored keys in a replay", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async () => ({ auth: { provider: "test", methods: [],
        loader: async () => ({ apiKey: "plugin-token", fetch: () => { throw new Error("past the recording") } }) } })`,
    },
    providers: { test: { options: { baseURL: "http://played.test/v1" }, models: { m: {} } } },
    aroundFetch: (ask) => (input, init) =>
      ask(
        String(input).replace("http://played.test/v1", () => engine.server.url),
        init,
      ),
    recorded: () => {
      throw new Error("no call was made")
    },
  })
  await engine.tackle.credentials.save("test", { type: "api", key: "stored-key" })
  expect((await run(engine)).end.text).toBe("Done.")
  expect(engine.server.requests[0]?.headers.authorization).toBe("Bearer none")
})

test("rejects a plugin with an invalid auth hook", async () => {
  await using engine = await startPluginEngine({
    files: { "a.mjs": "export default async () => ({ auth: { methods: 7 } })" },
  })
  expect(engine.tackle.problems()).toMatchObject([{ message: expect.stringContaining("{ provider, loader") }])
})

const method = (authorize: unknown, type = "oauth"): AuthMethod => {
  const [found] = readAuthHook({ provider: "p", methods: [{ type, label: "Way", authorize }] }).methods
  if (!found) throw new Error("no method")
  return found
}

test("gets tokens from a page, with or without a code of the user", async () => {
  const { type: _, ...tokens } = signedIn
  const page = await openSignInPage(
    method(async () => ({
      url: "https://p.test/",
      instructions: "Copy the code",
      method: "code",
      callback: async (code: string) =>
        code === "c0de" ? { type: "success", ...tokens } : { type: "failed" },
    })),
    {},
  )
  expect(page).toMatchObject({ url: "https://p.test/", method: "code", instructions: "Copy the code" })
  expect(await page.finish("c0de")).toEqual(signedIn)
  await expect(page.finish("wrong")).rejects.toThrow("rejected")
  await expect(
    openSignInPage(
      method(async () => ({})),
      {},
    ),
  ).rejects.toThrow("returned no sign-in page")
})

test("stores a key as given or as the plugin derives it", async () => {
  expect(await signInByKey(method(undefined, "api"), "k", {})).toEqual({ type: "api", key: "k" })
  const made = method(async ({ key, place }: Record<string, string>) => ({
    type: "success",
    key: `${place}-${key}`,
  }))
  expect(await signInByKey(made, "k", { place: "eu" })).toEqual({ type: "api", key: "eu-k" })
  const failing = method(async () => {
    throw new Error("offline")
  })
  await expect(signInByKey(failing, "k", {})).rejects.toThrow('Signing in with "Way" failed: offline')
  await expect(openSignInPage(failing, {})).rejects.toThrow('Signing in with "Way" failed: offline')
})

test("reports errors that escape a sign-in method under the plugin's name", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `const leave = (what) => setTimeout(() => { throw new Error(what) })
        export default async () => ({ auth: { provider: "test", methods: [{ type: "oauth", label: "Way",
          authorize: async () => {
            leave("early")
            return { url: "https://p.test/", instructions: "", method: "auto",
              callback: async () => { leave("late"); return { type: "success", key: "k" } } }
          } }] } })`,
    },
  })
  const [method] = engine.tackle.signIns()[0]?.methods ?? []
  if (!method) throw new Error("no method")
  const page = await openSignInPage(method, {})
  expect(await page.finish()).toEqual({ type: "api", key: "k" })
  await expect.poll(() => engine.problems.length).toBe(2)
  expect(engine.problems).toEqual([
    expect.stringMatching(/error in the plugin .*a\.mjs: Error: early/),
    expect.stringMatching(/error in the plugin .*a\.mjs: Error: late/),
  ])
})
