import assert from "node:assert/strict"
import { test } from "node:test"
import { total } from "../src/cart.js"

const cart = [
  { cents: 250, count: 2 },
  { cents: 1000, count: 1 },
]

test("a cart without a discount", () => assert.equal(total(cart), 1500))
test("a tenth off", () => assert.equal(total(cart, 0.1), 1350))
