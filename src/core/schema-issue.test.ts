import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeIssue } from "./schema-issue.js";

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), url: z.url() }),
]);
const content = z.union([z.string(), z.array(part), z.null()]);
const item = z.union([
  z.object({ kind: z.literal("a") }),
  z.object({ kind: z.literal("b") }),
  z.object({ kind: z.literal("c"), role: z.enum(["user", "system"]) }),
]);
const schema = z.object({
  messages: z.array(z.object({ content })),
  count: z.int().max(3).optional(),
  choice: z.union([z.enum(["auto", "none"]), z.object({ kind: z.literal("tool") })]).optional(),
  prompt: z.union([z.array(z.number()), z.array(z.string()), z.array(z.array(z.number()))]).optional(),
  item: item.optional(),
});

describe("describeIssue", () => {
  it.each([
    [{ messages: 1 }, "messages: expected array, received number"],
    [{ messages: [], count: 4 }, "count: Too big: expected number to be <=3"],
    [{ messages: [{ content: 5 }] }, "messages[0].content: expected string or array or null"],
    [
      { messages: [{ content: "" }, { content: [{ type: "text" }] }] },
      "messages[1].content[0].text: expected string, received undefined",
    ],
    [{ messages: [{ content: [{ type: "image", url: "x" }] }] }, "messages[0].content[0].url: Invalid URL"],
    [{ messages: [{ content: [{ type: "video" }] }] }, 'messages[0].content[0].type: expected "text" or "image"'],
    [{ messages: [{ content: [5] }] }, "messages[0].content[0]: expected object"],
    [5, "expected object, received number"],
    [{ messages: [], choice: 5 }, 'choice: expected "auto" or "none" or object'],
    [{ messages: [], choice: { kind: "x" } }, 'choice.kind: expected "tool"'],
    [{ messages: [], prompt: ["a", 5] }, "prompt[1]: expected string, received number"],
    [{ messages: [], prompt: [[1], "a"] }, "prompt[1]: expected array, received string"],
    [{ messages: [], item: { kind: "c", role: "x" } }, 'item.role: Invalid option: expected one of "user"|"system"'],
    [{ messages: [], item: { kind: "x", role: "user" } }, 'item.kind: expected "a" or "b" or "c"'],
  ])("names the place and the fault of %j", (value, message) => {
    expect(describeIssue(schema.safeParse(value).error!.issues)).toBe(message);
  });
});
