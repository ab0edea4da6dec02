import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { readTextFixture } from "../../../test/support/text.js";
import { AutoTokenizer } from "./auto-tokenizer.js";
import { Tokenizer } from "./tokenizer.js";
import type { TokenizerFiles } from "./tokenizer-files.js";

const { texts, cases } = readTextFixture("tokenizer-configs.json") as {
  readonly texts: readonly string[];
  readonly cases: Readonly<Record<string, { readonly fields: object; readonly ids: readonly (readonly number[])[] }>>;
};

let files: TokenizerFiles;
beforeAll(async () => {
  const folder = fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url));
  files = (await AutoTokenizer.fromPretrained(folder)).files;
});

describe("fields of tokenizer_config.json are read as in Transformers", () => {
  it.each(Object.entries(cases))("%s", (_, { fields, ids }) => {
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig: { ...(files.tokenizerConfig as object), ...fields } });
    expect(texts.map((text) => tokenizer.encode(text))).toEqual(ids);
  });
});
