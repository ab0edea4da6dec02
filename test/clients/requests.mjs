// What the tests of clients ask the server at LLAMAGYM_TEST_URL.
import assert from "node:assert/strict";
import * as z from "zod";

export const baseURL = `${process.env.LLAMAGYM_TEST_URL}/v1`;
export const [apiKey, model] = ["none", "embedded"];
export const QUESTION = "Your current total is 14. hit or stay?";
export const messages = [{ role: "user", content: QUESTION }];
export const Move = z.object({ move: z.enum(["hit", "stay"]) });
/** Takes many tokens, so that a request for it can be cancelled. */
export const Long = z.object({ moves: z.array(z.enum(["hit", "stay"])).length(150) });
export const parameters = {
  type: "object",
  properties: { amount: { type: "integer", enum: [1, 5] } },
  required: ["amount"],
};
export const isMove = (value) => assert.ok(Move.safeParse(value).success, JSON.stringify(value));
export const isBet = (value) => assert.ok([1, 5].includes(value.amount), JSON.stringify(value));

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** Leaves a stream after its first piece; the server must end the completion. */
export async function leave(stream) {
  for await (const _ of stream) break;
}
