import { describe, expect, test } from "vitest"
import { pageText } from "../../../src/tools/web/page-text.ts"

const latin1 = (text: string) => Buffer.from(text, "latin1")
const plain = "text/html"

describe("the encoding is", () => {
  test.each([
    ["the server's", latin1("ä"), "text/html; charset=ISO-8859-1", "ä"],
    ["the server's in quotes", latin1("ä"), 'text/html;charset="latin1"', "ä"],
    ["the server's, before the page's", latin1('<meta charset="utf-8">ä'), "text/html; charset=latin1", /ä$/],
    ["the page's", latin1("<meta charset=iso-8859-1>ä"), plain, /ä$/],
    [
      "the page's in its old form",
      latin1('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">\x80'),
      plain,
      /€$/,
    ],
    ["the XML's", latin1('<?xml version="1.0" encoding="ISO-8859-1"?>ä'), plain, /ä$/],
    ["Shift JIS", Buffer.of(0x93, 0xfa), "text/plain; charset=shift_jis", "日"],
    ["UTF-8 without a word", Buffer.from("ä"), plain, "ä"],
    ["UTF-8 for an unknown label", Buffer.from("ä"), "text/html; charset=martian", "ä"],
    ["UTF-8 where the page claims UTF-16", Buffer.from('<meta charset="utf-16">ä'), plain, /ä$/],
    ["the mark's, before all others", Buffer.from("\ufeffä"), "text/html; charset=latin1", "ä"],
    ["the mark's for UTF-16", Buffer.from("\ufeffä", "utf16le"), plain, "ä"],
    ["that of an empty page", Buffer.alloc(0), plain, ""],
  ])("%s", (_, body, contentType, expected) => {
    const text = pageText(body, contentType)
    if (typeof expected === "string") expect(text).toBe(expected)
    else expect(text).toMatch(expected)
  })
})
