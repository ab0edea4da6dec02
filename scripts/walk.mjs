// Counts the files of a walk through the code: what `llamagym train blackjack` enters from its
// arguments to where the train loop begins its first update. usage: npm run build && node
// scripts/walk.mjs [--list] [COMMAND...]
//
// The built command runs here with every function of dist reporting that it runs. Counted are the
// files of app and rl, in the order in which a function of theirs is first called; the areas below
// have walks of their own, and what only watches a run (trackers, displays) is not on its path. A
// file that is read already is not entered again. A return is a file that is called from another
// file than the one entered before it: a reader who follows the calls must go back to that file.
// What modules do while they load is not counted, apart from the two that start the command.
import { mkdtempSync, rmSync } from "node:fs";
import { register } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";

const dist = new URL("../dist/", import.meta.url).href;
const STARTS = ["app/cli/bin.js", "app/cli/main.js"];
const END = { file: "rl/train/train-loop.js", name: "TrainLoop.update" };
const isCounted = (file) => /^(app|rl)\//.test(file) && !/tracking\/|\/display\/|\/reporter\.js$/.test(file);

const toSource = (file) => file.replace(/\.js$/, ".ts");

/** Loads modules of dist with the reports of `instrument`. */
export async function load(url, context, next) {
  const result = await next(url, context);
  if (!url.startsWith(dist) || result.format !== "module") return result;
  return { ...result, source: await instrument(String(result.source), url.slice(dist.length)) };
}

const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];

/** Adds to each statement and expression body of a function a call that reports its place. */
async function instrument(text, file) {
  const { parseAst } = await import("vite");
  const inserts = [];
  const report = (name) => `__walk.report(${JSON.stringify(file)},${JSON.stringify(name)})`;
  const addStatements = (statements, name) => {
    for (const statement of statements)
      if (statement.type !== "FunctionDeclaration" && statement.directive === undefined)
        inserts.push([statement.start, `${report(name)};`]);
  };
  const visit = (node, owner, name, hint) => {
    if (Array.isArray(node)) return node.forEach((child) => visit(child, owner, name, hint));
    if (typeof node?.type !== "string") return;
    if (node.type.startsWith("Class") && node.type !== "ClassBody") owner = `${node.id?.name ?? hint ?? "class"}.`;
    if (node.type === "MethodDefinition" || node.type === "PropertyDefinition") hint = `${owner}${node.key.name}`;
    if (node.type === "Property" || node.type === "VariableDeclarator") hint = (node.key ?? node.id).name;
    if (FUNCTIONS.includes(node.type)) {
      name = node.id?.name ?? hint ?? `${name}>`;
      hint = undefined;
      if (node.body.type !== "BlockStatement")
        inserts.push([node.body.start, `(${report(name)},(`], [node.body.end, "))"]);
    }
    if (name !== "" && node.type === "BlockStatement") addStatements(node.body, name);
    if (name !== "" && node.type === "SwitchCase") addStatements(node.consequent, name);
    for (const [key, child] of Object.entries(node))
      if (typeof child === "object") visit(child, owner, name, ["value", "init"].includes(key) ? hint : undefined);
  };
  const tree = parseAst(text);
  visit(tree, "", "", undefined);
  if (STARTS.includes(file)) {
    addStatements(
      tree.body.filter(({ type }) => !/^(Import|Export|Class)/.test(type)),
      "(module)",
    );
  } else {
    inserts.push([tree.body.at(0)?.start ?? 0, "__walk.loading(1);"]);
    text += "\n__walk.loading(-1);";
  }
  const ordered = inserts.map(([at, code], i) => ({ at, code, i })).toSorted((a, b) => a.at - b.at || a.i - b.i);
  let [written, position] = ["", 0];
  for (const { at, code } of ordered) {
    written += text.slice(position, at) + code;
    position = at;
  }
  return written + text.slice(position);
}

/** Follows the calls; `onEnd` receives the entered files with the files that called them. */
class Walk {
  entered = [];
  calls = [];
  modules = 0;
  isOver = false;

  constructor(onEnd) {
    this.onEnd = onEnd;
  }

  loading(change) {
    this.modules += change;
  }

  report(file, name) {
    if (this.isOver || this.modules > 0) return;
    if (file === END.file && name === END.name) {
      this.isOver = true;
      this.onEnd(this.entered);
    }
    if (!isCounted(file)) return;
    const at = this.calls.findLastIndex((call) => call.file === file && call.name === name);
    if (at >= 0) return void (this.calls.length = at + 1);
    const caller = this.calls.at(-1)?.file;
    this.calls.push({ file, name });
    if (!this.entered.some((entry) => entry.file === file)) this.entered.push({ file, name, caller });
  }
}

function run() {
  const isListed = process.argv[2] === "--list";
  const given = process.argv.slice(isListed ? 3 : 2);
  const folder = mkdtempSync(join(tmpdir(), "walk-"));
  const print = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write = () => true;
  globalThis.__walk = new Walk((entered) => {
    const returns = entered.filter(({ caller }, i) => i > 0 && caller !== entered[i - 1].file).length;
    if (isListed)
      entered.forEach(({ file, name, caller }, i) => {
        if (i > 0 && caller !== entered[i - 1].file) print(`back to ${toSource(caller)}\n`);
        print(`  ${toSource(file)} ${name}\n`);
      });
    print(`${entered.length} files entered, ${returns} returns\n`);
    process.exit(0);
  });
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  register(import.meta.url);
  const command = given.length > 0 ? given : ["train", "blackjack"];
  process.argv.splice(1, Infinity, new URL(STARTS[0], dist).pathname, ...command, "--output", join(folder, "run"));
  return import(new URL(STARTS[0], dist).href);
}

if (isMainThread) await run();
