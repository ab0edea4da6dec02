import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { readTextFixture } from "../../../test/support/text.js";
import { AutoTokenizer } from "./auto-tokenizer.js";

const tokenizerJson = readTextFixture("model/tokenizer.json") as Record<string, unknown>;
const template = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}";
const chat = [{ role: "user", content: "Hit?" }];
const rendered = "<|im_start|>user\nHit?<|im_end|>\n";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenizer-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function write(files: Record<string, unknown>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
  }
}

describe("a tokenizer's folder", () => {
  it.each([
    ["a string in tokenizer_config.json", { "tokenizer_config.json": { chat_template: template } }],
    [
      "a list of named templates",
      {
        "tokenizer_config.json": {
          chat_template: [
            { name: "rag", template: "no" },
            { name: "default", template },
          ],
        },
      },
    ],
    [
      "chat_template.jinja, before the one in tokenizer_config.json",
      { "tokenizer_config.json": { chat_template: "no" }, "chat_template.jinja": template },
    ],
    ["chat_template.json", { "chat_template.json": { chat_template: template } }],
    [
      "a folder of named templates",
      { "chat_template.jinja": template, "additional_chat_templates/tool_use.jinja": "tools: {{ tools | length }}" },
    ],
  ])("has its chat template as %s", async (_, files) => {
    await write({ "tokenizer.json": tokenizerJson, ...files });
    expect((await AutoTokenizer.fromPretrained(folder)).applyChatTemplate(chat)).toBe(rendered);
  });

  it("selects the named template or the one for tools", async () => {
    const templates = [
      { name: "default", template },
      { name: "tool_use", template: "{{ tools | length }} tool" },
      { name: "rag", template: "{{ documents is none }} {{ extra }}" },
    ];
    await write({ "tokenizer.json": tokenizerJson, "tokenizer_config.json": { chat_template: templates } });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    expect(tokenizer.applyChatTemplate(chat, { tools: [{ name: "hit" }] })).toBe("1 tool");
    expect(tokenizer.applyChatTemplate(chat, { chatTemplate: "rag", variables: { extra: 5 } })).toBe("True 5");
    expect(tokenizer.applyChatTemplate(chat, { chatTemplate: "{{ messages[0].content }}" })).toBe("Hit?");
    expect(Array.from(tokenizer.chatTemplates.keys())).toEqual(["default", "tool_use", "rag"]);
  });

  it("names special tokens in the old dialect", async () => {
    await write({
      "tokenizer.json": { ...tokenizerJson, added_tokens: [] },
      "tokenizer_config.json": {
        added_tokens_decoder: {
          "0": { content: "<|endoftext|>", special: true, normalized: false },
          "2": { content: "<|im_end|>", special: true, normalized: false },
        },
        eos_token: { content: "<|im_end|>", __type: "AddedToken" },
        additional_special_tokens: ["<|im_start|>"],
      },
      "special_tokens_map.json": { eos_token: "<|endoftext|>" },
      "generation_config.json": { eos_token_id: [2, 0] },
    });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    expect([tokenizer.eosToken, tokenizer.eosTokenId, tokenizer.eosTokenIds]).toEqual(["<|im_end|>", 2, [2, 0]]);
    expect(tokenizer.specialTokenIds).toEqual([0, 1, 2]);
    expect(tokenizer.encode("<|im_start|>")).toEqual([1]);
  });

  it("names them in special_tokens_map.json alone", async () => {
    await write({
      "tokenizer.json": tokenizerJson,
      "special_tokens_map.json": { bos_token: { content: "<|im_start|>" }, pad_token: "<|endoftext|>" },
    });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    expect([tokenizer.bosTokenId, tokenizer.padTokenId, tokenizer.eosTokenId]).toEqual([1, 0, undefined]);
  });

  it("adds tokens that only tokenizer_config.json has after the vocabulary", async () => {
    await write({
      "tokenizer.json": tokenizerJson,
      "tokenizer_config.json": { pad_token: "<pad>", extra_special_tokens: ["<x>"] },
    });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    expect([tokenizer.padTokenId, tokenizer.tokenToId("<x>"), tokenizer.vocabSize]).toEqual([320, 321, 322]);
    expect(tokenizer.decode(tokenizer.encode("a<pad>b<x>"), { skipSpecialTokens: true })).toBe("ab");
  });

  it("has special tokens by their names where tokenizer.json lists others", async () => {
    const listed = (tokenizerJson.added_tokens as object[]).map((token) => ({ ...token, special: false }));
    await write({
      "tokenizer.json": { ...tokenizerJson, added_tokens: listed },
      "tokenizer_config.json": {
        eos_token: "<|im_end|>",
        image_token: "<|endoftext|>",
        extra_special_tokens: ["<|im_start|>"],
      },
    });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    expect(tokenizer.decode([67, 0, 68, 1, 68, 2, 68], { skipSpecialTokens: true })).toBe("ab<|im_start|>bb");
  });

  // As Transformers 5.16 does.
  it.each<[string, Record<string, number>, Record<string, object>, ...[number, string, boolean][]]>([
    ["in the order of ids", { "<x>": 321, "<y>": 320 }, {}, [320, "<y>", false], [321, "<x>", false]],
    ["with the next ids", { "<x>": 400, "<y>": 70 }, {}, [320, "<y>", false], [321, "<x>", false]],
    ["unless tokenizer.json has their ids", { "<x>": 1, "<y>": 320 }, {}, [320, "<y>", false]],
    ["with ids of the vocabulary", { "¤": 100, "<x>": 320 }, {}, [100, "¤", false], [320, "<x>", false]],
    [
      "unless tokenizer_config.json has added_tokens_decoder",
      { "<x>": 320 },
      { "tokenizer_config.json": { added_tokens_decoder: {} } },
    ],
    [
      "as special ones if they are named",
      { "<x>": 320, "<y>": 321, "<z>": 322 },
      { "tokenizer_config.json": { pad_token: "<x>", additional_special_tokens: ["<y>"] } },
      [320, "<x>", true],
      [321, "<y>", true],
      [322, "<z>", false],
    ],
    [
      "as special ones if special_tokens_map.json names them",
      { "<x>": 320, "<y>": 321, "<z>": 322 },
      {
        "tokenizer_config.json": { image_token: "<z>" },
        "special_tokens_map.json": { pad_token: { content: "<x>", lstrip: true }, extra_special_tokens: ["<y>"] },
      },
      [320, "<x>", true],
      [321, "<y>", true],
      [322, "<z>", true],
    ],
    [
      "before those that only tokenizer_config.json names",
      { "<x>": 320, "": 330 },
      { "tokenizer_config.json": { pad_token: "<z>" } },
      [320, "<x>", false],
      [321, "<z>", true],
    ],
  ])("adds the tokens of added_tokens.json %s", async (_, addedTokens, files, ...expected) => {
    await write({ "tokenizer.json": tokenizerJson, "added_tokens.json": addedTokens, ...files });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    const added = tokenizer.addedTokens.filter(({ id }) => id > 2);
    expect(added.map(({ id, content, special }) => [id, content, special])).toEqual(expected);
    for (const [id, content] of expected) expect(tokenizer.encode(`a${content}b`)).toEqual([67, id, 68]);
    const copy = join(folder, "copy");
    await tokenizer.save(copy);
    expect((await AutoTokenizer.fromPretrained(copy)).addedTokens).toEqual(tokenizer.addedTokens);
  });

  it("refuses added_tokens.json with an id that is no number", async () => {
    await write({ "tokenizer.json": tokenizerJson, "added_tokens.json": { "<x>": "320" } });
    await expect(AutoTokenizer.fromPretrained(folder)).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining('added_tokens.json: the id of "<x>" is "320", expected an integer') as string,
    });
  });

  it("adds a beginning token that only tokenizer_config.json defines", async () => {
    const config = { bos_token: "<|im_start|>", eos_token: "<|im_end|>", add_bos_token: true };
    await write({ "tokenizer.json": { ...tokenizerJson, post_processor: null }, "tokenizer_config.json": config });
    expect((await AutoTokenizer.fromPretrained(folder)).encode("a")).toEqual([1, 67]);
    await write({ "tokenizer.json": tokenizerJson });
    expect((await AutoTokenizer.fromPretrained(folder)).encode("a")).toEqual([67]);
  });

  it("is written as read", async () => {
    const files = {
      "tokenizer.json": tokenizerJson,
      "tokenizer_config.json": { eos_token: "<|im_end|>", model_max_length: 1e30, own: { deep: [1, 2.5, null] } },
      "special_tokens_map.json": { eos_token: "<|im_end|>" },
    };
    await write({ ...files, "chat_template.jinja": template, "additional_chat_templates/rag.jinja": "no" });
    const copy = join(folder, "copy", "of");
    await (await AutoTokenizer.fromPretrained(folder)).save(copy);
    for (const [name, content] of Object.entries(files)) {
      expect(JSON.parse(await readFile(join(copy, name), "utf8"))).toEqual(content);
    }
    // Python reads a number with an exponent as a fraction.
    expect(await readFile(join(copy, "tokenizer_config.json"), "utf8")).toContain(
      '"model_max_length": 1000000000000000019884624838656',
    );
    expect(await readFile(join(copy, "chat_template.jinja"), "utf8")).toBe(template);
    expect((await readdir(copy)).sort()).toEqual([
      "additional_chat_templates",
      "chat_template.jinja",
      "special_tokens_map.json",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    expect((await AutoTokenizer.fromPretrained(copy)).applyChatTemplate(chat)).toBe(rendered);
  });

  it("is reported when a file is truncated, empty or missing", async () => {
    await write({ "tokenizer.json": JSON.stringify(tokenizerJson).slice(0, 900) });
    await expect(AutoTokenizer.fromPretrained(folder)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    await write({ "tokenizer.json": "" });
    await expect(AutoTokenizer.fromPretrained(folder)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    await rm(join(folder, "tokenizer.json"));
    await expect(AutoTokenizer.fromPretrained(folder)).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
      message: expect.stringContaining("has no tokenizer.json"),
    });
    await expect(AutoTokenizer.fromPretrained(join(folder, "nowhere"))).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
  });
});
