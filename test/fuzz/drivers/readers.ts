import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  AutoModelForCausalLM,
  AutoTokenizer,
  PeftModel,
  readDemonstrations,
  readExamples,
  type RandomStream,
} from "../../../src/index.js";
import { TextWorldEnv } from "../../../src/text-world/index.js";
import type { Attempt, Driver } from "../driver.js";
import { fixturePath, readFixture, readJsonFixture } from "../fixtures.js";
import { mutateBytes, mutateJson } from "../mutate.js";

type Random = RandomStream;

const DEVICE = { device: "cpu", threads: 1 } as const;
/** One in so many models that open also samples a token. */
const GENERATE_EVERY = 20;
const MESSAGES = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Hit or stay? é\u{1f600}" },
  { role: "assistant", content: "stay" },
];

async function openModel(path: string, random: Random): Promise<void> {
  const model = await AutoModelForCausalLM.fromPretrained(path, DEVICE);
  try {
    if (random.integers(GENERATE_EVERY) === 0) await model.generate([1, 2, 3], { maxNewTokens: 2, seed: 1 });
    if (model.hasTokenizer) model.tokenizer.decode(model.tokenizer.encode("hit or stay?"));
  } finally {
    await model.close();
  }
}

function readGguf(scratch: string): Attempt {
  const folder = fixturePath("files", "gguf");
  const names = readdirSync(folder).filter((name) => name.endsWith(".gguf") && !name.includes("split"));
  const path = join(scratch, "mutant.gguf");
  return async (random) => {
    const bytes = readFileSync(join(folder, random.choice(names)));
    writeFileSync(path, mutateBytes(bytes, random.choice([64, 1024, 4096, bytes.length]), random));
    await openModel(path, random);
  };
}

/** A safetensors file with a mutated header, whose length is mostly kept right. */
function mutateSafetensors(bytes: Buffer, random: Random): Uint8Array {
  const length = Number(bytes.readBigUInt64LE());
  if (random.integers(3) === 0) return mutateBytes(bytes, 8 + length, random);
  const header = Buffer.from(mutateJson(JSON.parse(bytes.subarray(8, 8 + length).toString()), random));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([size, header, bytes.subarray(8 + length)]);
}

/** Copies a folder and replaces one of its files by a mutant. */
function mutateFolder(source: string, folder: string, names: readonly string[], random: Random): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of names) cpSync(join(source, name), join(folder, name));
  const name = random.choice(names);
  const bytes = readFileSync(join(source, name));
  const mutant = name.endsWith(".json")
    ? mutateJson(JSON.parse(bytes.toString()), random)
    : mutateSafetensors(bytes, random);
  writeFileSync(join(folder, name), mutant);
}

function readModelFolder(scratch: string): Attempt {
  const models = readdirSync(fixturePath("models")).filter((name) => !name.includes("."));
  const folder = join(scratch, "model");
  const names = ["config.json", "generation_config.json", "model.safetensors"];
  return async (random) => {
    mutateFolder(fixturePath("models", random.choice(models)), folder, names, random);
    await openModel(folder, random);
  };
}

async function readAdapter(scratch: string): Promise<Attempt> {
  const source = fixturePath("models", "llama");
  const model = await AutoModelForCausalLM.fromPretrained(source, DEVICE);
  const folder = join(scratch, "adapter");
  return async (random) => {
    mutateFolder(join(source, "adapter"), folder, ["adapter_config.json", "adapter_model.safetensors"], random);
    const adapted = await PeftModel.fromPretrained(model, folder);
    if (random.integers(GENERATE_EVERY) === 0) await adapted.generate([1, 2, 3], { maxNewTokens: 2, seed: 1 });
  };
}

function readTokenizer(scratch: string): Attempt {
  const published = Object.values(readJsonFixture("text", "tokenizers.json") as Record<string, { tokenizer: unknown }>);
  const ownConfig = readJsonFixture("text", "model", "tokenizer_config.json");
  const trees = [readJsonFixture("text", "model", "tokenizer.json"), ...published.map((each) => each.tokenizer)];
  return async (random) => {
    const tree = random.choice(trees);
    const isConfig = random.integers(4) === 0;
    writeFileSync(join(scratch, "tokenizer.json"), isConfig ? JSON.stringify(tree) : mutateJson(tree, random));
    writeFileSync(
      join(scratch, "tokenizer_config.json"),
      isConfig ? mutateJson(ownConfig, random) : JSON.stringify(ownConfig),
    );
    const tokenizer = await AutoTokenizer.fromPretrained(scratch);
    const tokens = tokenizer.encode("Your current total is 14, é\u{1f600}  hit or stay?\n");
    tokenizer.decode(tokens);
    tokenizer.encodeChat(MESSAGES);
  };
}

const LINES: readonly unknown[] = [
  { messages: MESSAGES, infos: [{ score: 1 }], return: 1 },
  { prompt: "14 or 20?", completion: "stay", system: "Be brief." },
  { instruction: "Add.", input: "1 + 1", output: "2" },
  {
    conversations: [
      { from: "human", value: "6 or 7?" },
      { from: "gpt", value: "hit" },
    ],
  },
  { tokens: [1, 2, 3], mask: [0, 0, 1] },
  {
    prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    completion: [{ role: "assistant", content: "x" }],
  },
];

function readJsonLines(scratch: string): Attempt {
  const path = join(scratch, "mutant.jsonl");
  return async (random) => {
    const lines = Array.from({ length: 1 + random.integers(4) }, () => mutateJson(random.choice(LINES), random));
    const bytes = Buffer.from(lines.join("\n"));
    writeFileSync(path, random.integers(10) === 0 ? mutateBytes(bytes, bytes.length, random) : bytes);
    const onInvalidLine = random.choice(["error", "skip"] as const);
    if (random.integers(2) === 0) await readExamples(path, { onInvalidLine, prompts: random.choice(["text", "chat"]) });
    else await readDemonstrations(path, { onInvalidLine });
  };
}

const COMMANDS = ["look", "inventory", "go north", "take coin", "open chest", "examine table", "xyzzy", ""];

/** TextWorld games: the description (JSON) or the Z-machine's story is mutated. */
function readTextWorld(scratch: string): Attempt {
  const story = gunzipSync(readFixture("textworld", "custom_game.z8.gz"));
  const description = gunzipSync(readFixture("textworld", "custom_game.json.gz")).toString();
  const tree: unknown = JSON.parse(description);
  const gameFile = join(scratch, "game.z8");
  return (random) => {
    const mutatesStory = random.integers(2) === 0;
    // The header, the objects and the dictionary come before the code.
    const header = random.choice([64, 1024, 0x5000, story.length]);
    writeFileSync(gameFile, mutatesStory ? mutateBytes(story, header, random) : story);
    writeFileSync(join(scratch, "game.json"), mutatesStory ? description : mutateJson(tree, random));
    const env = new TextWorldEnv({ gameFile, infos: ["admissibleCommands", "description", "policyCommands"] });
    env.reset({ seed: 1 });
    for (let i = 0; i < 5; i++) {
      if (env.step(random.choice(COMMANDS.slice(0, -1))).terminated) break;
    }
    return Promise.resolve();
  };
}

/** Files of models, data and games. */
export const readers: Driver = {
  timeLimitMs: 10_000,
  share: 1,
  async start(scratch) {
    const attempts = [
      readGguf(scratch),
      readModelFolder(scratch),
      await readAdapter(scratch),
      readTokenizer(scratch),
      readJsonLines(scratch),
      readTextWorld(scratch),
    ];
    return (random) => random.choice(attempts)(random);
  },
};
