import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { ParentConnection } from "../../core/platform/ports.js";
import type { Tensor } from "../tensor/tensor.js";
import { release, runGuarded, type ExitGuard } from "./exit-guard.js";
import type { WorkerMessage, WorkerRequest, WorkerResponse, WorkerResult } from "./worker-protocol.js";

/** Lists buffers of a result that are transferred instead of copied. */
function listTransferables(result: WorkerResult): ArrayBuffer[] {
  if (typeof result !== "object" || ArrayBuffer.isView(result)) return [];
  // One tensor, or several under arbitrary names.
  const data = [result, ...Object.values(result)].map((value) => (value as Partial<Tensor> | undefined)?.data);
  return [...new Set(data.flatMap((each) => (ArrayBuffer.isView(each) ? [each.buffer as ArrayBuffer] : [])))];
}

/** Handles a worker's requests in order: a kernel must see what the preceding run wrote. */
export function serveRequests(
  parent: ParentConnection<WorkerMessage, ExitGuard>,
  handle: (request: WorkerRequest) => Promise<WorkerResult>,
): void {
  // All modules of the worker are loaded.
  parent.onStart(release);
  let queue: Promise<void> = Promise.resolve();
  parent.onMessage(({ id, request }) => {
    queue = queue.then(async () => {
      let response: WorkerResponse;
      try {
        response = { id, ok: true, result: await runGuarded(parent.data, () => handle(request)) };
      } catch (error) {
        const code = error instanceof LlamaGymError ? error.code : undefined;
        response = { id, ok: false, message: errorMessage(error), code };
      }
      parent.post(response, response.ok ? listTransferables(response.result) : []);
    });
  });
}
