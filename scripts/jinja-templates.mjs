// Renders every chat template of a folder with conversations of many kinds, here and by jinja2 as
// Transformers sets it up, and compares the texts. usage: npm run build && node
// scripts/jinja-templates.mjs PYTHON FOLDER [FOLDER ...]; PYTHON has transformers and jinja2
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toTemplateMessages } from "../dist/models/text/chat-messages.js";
import { ChatTemplate } from "../dist/models/text/jinja/chat-template.js";
import { UnsupportedTemplate } from "../dist/models/text/jinja/unsupported-template.js";

const RENDER = `
import json, sys
from transformers.utils.chat_template_utils import _compile_jinja_template
source = json.load(sys.stdin)
results = []
for template in source["templates"]:
    row = []
    for variables in source["conversations"]:
        try:
            row.append({"text": _compile_jinja_template(template).render(**json.loads(json.dumps(variables)))})
        except Exception as error:
            row.append({"error": f"{type(error).__name__}: {error}"[:200]})
    results.append(row)
print(json.dumps(results))
`;

const look = (hand) => ({ type: "function", id: "call00001", function: { name: "look", arguments: { hand } } });
const user = (content) => ({ role: "user", content });
const assistant = (content, fields = {}) => ({ role: "assistant", content, ...fields });
const SYSTEM = { role: "system", content: "You play Blackjack." };
const RESULT = { role: "tool", name: "look", tool_call_id: "call00001", content: "14" };
const parameters = {
  type: "object",
  properties: {
    hand: { type: "integer", description: "Its number." },
    why: { type: ["string", "null"], enum: ["a", null] },
  },
  required: ["hand"],
};
const tools = [{ type: "function", function: { name: "look", description: "Looks at a hand.", parameters } }];
const parts = [
  { type: "text", text: "14 or " },
  { type: "text", text: "20?" },
];
const CONVERSATIONS = [
  { messages: [user("14 or 20?")], add_generation_prompt: true },
  { messages: [SYSTEM, user("14?"), assistant("hit"), user("20?")], add_generation_prompt: true },
  { messages: [SYSTEM, user(" 14?\n"), assistant("\nhit ")] },
  { messages: [user(parts), assistant("stay")] },
  { messages: [user("20?"), assistant("stay", { reasoning_content: "20 is high." }), user("6?"), assistant("hit")] },
  { messages: [user("20?"), assistant("<think>\nhigh\n</think>\n\nstay"), user("6?")], add_generation_prompt: true },
  { messages: [user("20?")], tools, add_generation_prompt: true },
  { messages: [SYSTEM, user("20?"), assistant("", { tool_calls: [look(1)] }), RESULT, assistant("stay")], tools },
  {
    messages: [user("20?"), assistant(null, { tool_calls: [look(1), look(2)] }), RESULT, RESULT],
    tools,
    add_generation_prompt: true,
  },
  { messages: [user("20?")], enable_thinking: false, add_generation_prompt: true },
  { messages: [user("20?")], enable_thinking: true, reasoning_effort: "low", add_generation_prompt: true },
  { messages: [user("Zwölf 🂡 <b>&</b>?"), assistant("Sí")], documents: [{ title: "T", text: "x" }] },
  { messages: [{ role: "developer", content: "Be short." }, user("?")], add_generation_prompt: true },
  { messages: [SYSTEM] },
];
const GLOBALS = { tools: null, documents: null, add_generation_prompt: false, bos_token: "<s>", eos_token: "</s>" };

const [python, ...folders] = process.argv.slice(2);
const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".jinja"))
    .map((name) => join(folder, name)),
);
const templates = files.map((file) => readFileSync(file, "utf8"));
const conversations = CONVERSATIONS.map(({ messages, ...variables }) => ({
  ...GLOBALS,
  ...variables,
  messages: toTemplateMessages(messages),
}));
const { status, stdout, stderr } = spawnSync(python, ["-c", RENDER], {
  input: JSON.stringify({ templates, conversations }),
  encoding: "utf8",
  maxBuffer: 2 ** 28,
});
if (status !== 0) throw new Error(stderr.slice(-3000));

function render(template, variables) {
  try {
    return { text: new ChatTemplate(template).render({ variables }) };
  } catch (error) {
    return error.cause instanceof UnsupportedTemplate ? { refused: error.message } : { error: error.message };
  }
}

const counts = { equal: 0, "both an error": 0, refused: 0, different: 0 };
let equalTemplates = 0;
for (const [i, row] of JSON.parse(stdout).entries()) {
  const before = counts.equal + counts["both an error"];
  for (const [j, expected] of row.entries()) {
    const found = render(templates[i], conversations[j]);
    const kind =
      found.refused !== undefined
        ? "refused"
        : found.text !== expected.text
          ? "different"
          : found.text === undefined
            ? "both an error"
            : "equal";
    counts[kind]++;
    if (kind === "refused" || kind === "different")
      console.log(`${files[i]}, conversation ${j}: ${kind}\n  ${JSON.stringify(found)}\n  ${JSON.stringify(expected)}`);
  }
  if (counts.equal + counts["both an error"] === before + row.length) equalTemplates++;
}
console.log(`${equalTemplates} of ${files.length} templates are equal in all ${conversations.length} conversations`);
console.log(
  Object.entries(counts)
    .map(([kind, count]) => `${kind}: ${count}`)
    .join(", "),
);
process.exitCode = counts.different + counts.refused > 0 ? 1 : 0;
