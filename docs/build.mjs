// Builds the API reference into docs/api and fails if a public export has no docstring: npm run
// docs
import { fileURLToPath } from "node:url";
import { Application } from "typedoc";

const app = await Application.bootstrapWithPlugins({
  options: fileURLToPath(new URL("typedoc.json", import.meta.url)),
});
const project = await app.convert();
if (project === undefined) process.exit(1);

/** Exports of all entry points, without those that only refer to another entry point's. */
const exported = (project.children ?? [])
  .flatMap(({ children }) => children ?? [])
  .filter((child) => !child.isReference());
const undocumented = exported.filter(
  (child) => !child.hasComment() && !(child.signatures ?? []).some((signature) => signature.hasComment()),
);
for (const child of undocumented) {
  const [source] = child.sources ?? child.signatures?.[0].sources ?? [];
  console.error(`${source?.fileName}:${source?.line}: ${child.name} is exported without a docstring`);
}
await app.generateOutputs(project);
console.log(`${exported.length} exports, ${undocumented.length} without a docstring`);
process.exit(undocumented.length === 0 && !app.logger.hasErrors() ? 0 : 1);
