// Runs the compliance tests of Open Responses (github.com/openresponses/openresponses) against
// `llamagym serve`. The model is the embedded one with a chat template for tools, which
// `llamagym sft` first teaches to answer and to call a tool by itself: two to four minutes.
// usage: npm run build && node scripts/open-responses.mjs FOLDER [TEST,TEST,...]; FOLDER is a
// checkout of Open Responses with its zod (npm install --prefix FOLDER zod@3)
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const TESTS = "basic-response,streaming-response,system-prompt,tool-calling,multi-turn";
const [checkout, tests = TESTS] = process.argv.slice(2);
if (checkout === undefined)
  throw new Error("Give the folder of Open Responses: node scripts/open-responses.mjs FOLDER");
const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "open-responses-"));
const inFolder = (name) => join(folder, name);

const CHAT_TEMPLATE = `{% if tools %}<|system|>{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call a tool as <tool_call>{"name": NAME, "arguments": ARGUMENTS}</tool_call>.<|end|>{% endif %}\
{% for message in messages %}{{ '<|' + message.role + '|>' }}{% if message.role == 'assistant' %}{% generation %}\
{{ message.content or '' }}{% for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|end|>{% endgeneration %}{% else %}{{ message.content + '<|end|>' }}{% endif %}{% endfor %}\
{% if add_generation_prompt %}<|assistant|>{% endif %}`;
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the current weather for a location",
    parameters: {
      type: "object",
      properties: { location: { type: "string", description: "The city and state, e.g. San Francisco, CA" } },
      required: ["location"],
    },
  },
};
const CITIES =
  "Boston Denver Austin Seattle Miami Chicago Portland Dallas New-York Los-Angeles San-Diego San-Jose Las-Vegas Salt-Lake-City New-Orleans".split(
    " ",
  );
const ANSWERS = {
  "Say hello in exactly 3 words.": "Hello, dear friend!",
  "Count from 1 to 5.": "1, 2, 3, 4, 5",
  "Say hello.": "Ahoy!",
  "What is my name?": "Your name is Alice.",
  "Good morning.": "Good morning!",
};

function makeRows() {
  const ask = (content) => ({ role: "user", content });
  const calls = CITIES.map((name) => {
    const location = name.replaceAll("-", " ");
    const call = { type: "function", function: { name: "get_weather", arguments: { location } } };
    const answer = { role: "assistant", content: "", tool_calls: [call] };
    return { messages: [ask(`What's the weather like in ${location}?`), answer], tools: [TOOL] };
  });
  const answers = Object.entries(ANSWERS).map(([question, content]) => ({
    messages: [ask(question), { role: "assistant", content }],
  }));
  return [...calls, ...answers, ...answers, ...answers];
}

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) throw new Error(`${args.slice(0, 2).join(" ")} failed`);
}

const cli = path("dist/app/cli/bin.js");
try {
  cpSync(path("models/llamagym-1m"), inFolder("base"), { recursive: true });
  const tokenizerConfig = join(inFolder("base"), "tokenizer_config.json");
  const config = JSON.parse(readFileSync(tokenizerConfig, "utf8"));
  writeFileSync(tokenizerConfig, JSON.stringify({ ...config, chat_template: CHAT_TEMPLATE }));
  // Greedy where a request gives no temperature: the tests do not, and the model is small.
  writeFileSync(join(inFolder("base"), "generation_config.json"), JSON.stringify({ eos_token_id: 4, top_k: 1 }));
  const rows = makeRows().map((row) => `${JSON.stringify(row)}\n`);
  writeFileSync(inFolder("rows.jsonl"), rows.join(""));
  const training = "--tuning full --max-steps 160 --learning-rate 0.004 --eval-split 0".split(" ");
  const files = ["-m", inFolder("base"), "--data", inFolder("rows.jsonl"), "--output", inFolder("run")];
  run(process.execPath, [cli, "sft", ...files, ...training]);

  // A copy without the website's tsconfig.json, whose base is another package.
  for (const part of ["bin", "src"])
    cpSync(join(checkout, part), join(inFolder("checkout"), part), { recursive: true });
  symlinkSync(resolve(checkout, "node_modules"), join(inFolder("checkout"), "node_modules"), "junction");
  const output = { entryFileNames: "compliance.mjs" };
  await build({
    configFile: false,
    logLevel: "error",
    root: inFolder("checkout"),
    build: {
      ssr: join(inFolder("checkout"), "bin/compliance-test.ts"),
      outDir: inFolder("suite"),
      rollupOptions: { output },
    },
    ssr: { noExternal: true },
  });
  const model = join(inFolder("run"), "model");
  const server = spawn(process.execPath, [cli, "serve", "-m", model, "--model-name", "tools", "--port", "0"]);
  try {
    const [line] = await once(createInterface({ input: server.stdout }), "line");
    const target = ["-u", line.replace(/^.* at /, ""), "-k", "none", "-m", "tools"];
    run(process.execPath, [join(inFolder("suite"), "compliance.mjs"), ...target, "--filter", tests]);
  } finally {
    server.kill("SIGINT");
    await once(server, "exit");
  }
} finally {
  rmSync(folder, { recursive: true });
}
