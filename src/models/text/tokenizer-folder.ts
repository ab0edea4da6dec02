import { fs } from "#platform";

import { LlamaGymError } from "../../core/errors.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import { ignoreMissingFile, toReadError } from "../../core/files/file-errors.js";
import { readJson } from "../../core/files/json-file.js";
import { isObject } from "./tokenization/tokenizer-json.js";
import type { TokenizerFiles } from "./tokenizer-files.js";

/** Folder of named chat templates, as saved by Transformers. */
const NAMED_TEMPLATES_FOLDER = "additional_chat_templates";

/**
 * Reads the tokenizer files of a folder; only tokenizer.json is required. @throws FILE_NOT_FOUND,
 * FILE_READ_FAILED and FILE_CORRUPT.
 */
export async function readTokenizerFolder(folder: string): Promise<TokenizerFiles> {
  const optional = (name: string) => readJson(fs.join(folder, name)).catch(ignoreMissingFile);
  const [tokenizerConfig, specialTokensMap, addedTokens, generationConfig, chatTemplate] = await Promise.all([
    optional("tokenizer_config.json"),
    optional("special_tokens_map.json"),
    optional("added_tokens.json"),
    optional("generation_config.json"),
    readTemplates(folder),
  ]);
  const tokenizerJson = await readJson(fs.join(folder, "tokenizer.json")).catch((error: unknown) => {
    throw ignoreMissingFile(error) === undefined ? missingTokenizerError(folder) : error;
  });
  return { tokenizerJson, tokenizerConfig, specialTokensMap, addedTokens, generationConfig, chatTemplate };
}

/**
 * Writes tokenizer files for Python's AutoTokenizer, each atomically and as it was read. A separate
 * chat template is written to chat_template.jinja, named ones next to it. Returns the files' names.
 * @throws FILE_WRITE_FAILED.
 */
export async function writeTokenizerFolder(files: TokenizerFiles, folder: string): Promise<string[]> {
  const names = ["tokenizer.json"];
  await writeFileAtomic(fs.join(folder, "tokenizer.json"), `${JSON.stringify(files.tokenizerJson, null, 2)}\n`);
  for (const [name, value] of [
    ["tokenizer_config.json", files.tokenizerConfig],
    ["special_tokens_map.json", files.specialTokensMap],
    ["added_tokens.json", files.addedTokens],
  ] as const) {
    if (value === undefined) continue;
    await writeFileAtomic(fs.join(folder, name), formatConfig(value));
    names.push(name);
  }
  const { chatTemplate } = files;
  if (chatTemplate === undefined) return names;
  const templates = typeof chatTemplate === "string" ? { default: chatTemplate } : chatTemplate;
  for (const [name, template] of Object.entries(templates)) {
    const path = name === "default" ? "chat_template.jinja" : `${NAMED_TEMPLATES_FOLDER}/${checkFileName(name)}.jinja`;
    await writeFileAtomic(fs.join(folder, path), template);
    names.push(path);
  }
  return names;
}

/** Python writes large integers in full and would read 1e+30 as a float. */
function formatConfig(value: unknown): string {
  const text = JSON.stringify(
    value,
    (_, item: unknown) =>
      typeof item === "number" && Number.isInteger(item) && Math.abs(item) >= 1e21 ? `\u0000${BigInt(item)}` : item,
    2,
  );
  return `${text.replace(/"\\u0000(-?\d+)"/g, "$1")}\n`;
}

/**
 * Reads chat_template.jinja, the older chat_template.json and named templates; undefined when there
 * is none.
 */
async function readTemplates(folder: string): Promise<TokenizerFiles["chatTemplate"]> {
  const templates: Record<string, string> = {};
  const main = (await readTextFile(fs.join(folder, "chat_template.jinja"))) ?? (await readJsonTemplate(folder));
  if (main !== undefined) templates.default = main;
  const names = await fs.list(fs.join(folder, NAMED_TEMPLATES_FOLDER)).catch(() => []);
  for (const name of names.filter((file) => file.endsWith(".jinja")).sort()) {
    const text = await readTextFile(fs.join(folder, NAMED_TEMPLATES_FOLDER, name));
    if (text !== undefined) templates[name.slice(0, -".jinja".length)] = text;
  }
  const found = Object.keys(templates);
  if (found.length === 0) return undefined;
  return found.length === 1 && templates.default !== undefined ? templates.default : templates;
}

async function readJsonTemplate(folder: string): Promise<string | undefined> {
  const file = await readJson(fs.join(folder, "chat_template.json")).catch(ignoreMissingFile);
  return isObject(file) && typeof file.chat_template === "string" ? file.chat_template : undefined;
}

async function readTextFile(path: string): Promise<string | undefined> {
  try {
    return await fs.readText(path);
  } catch (error) {
    return ignoreMissingFile(toReadError(path, error));
  }
}

function missingTokenizerError(folder: string): LlamaGymError {
  return new LlamaGymError(
    "FILE_NOT_FOUND",
    `${folder} has no tokenizer.json. If it has another kind of tokenizer file, convert it once in Python: ` +
      "AutoTokenizer.from_pretrained(folder).save_pretrained(folder).",
  );
}

/** Returns a template's file name. */
function checkFileName(name: string): string {
  if (/^[\w.-]+$/.test(name) && !/^\.+$/.test(name)) return name;
  throw new LlamaGymError(
    "FILE_WRITE_FAILED",
    `The chat template's name ${JSON.stringify(name)} is not a valid file name. Use letters, digits, "_", "-" and ".".`,
  );
}
