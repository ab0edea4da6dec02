import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeIssue } from "./schema-issue.js";

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), url: z.url() }),
]);
const content = z.union([z.string(), z.array(part), z.null()]);
const schema = z.object({ messages: z.array(z.object({ content })), count: z.int().max(3).optional() });

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
  ])("names the place and the fault of %j", (value, message) => {
    expect(describeIssue(schema.safeParse(value).error!.issues)).toBe(message);
  });
});
