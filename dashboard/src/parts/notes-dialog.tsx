import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { NotesRequest, RunRow } from "../../../src/app/dashboard/api.js";
import { useDashboard } from "../data/context.js";
import { runPath } from "../data/source.js";
import { stripControls } from "../text/ansi.js";
import { Banner } from "./controls.js";

/** Edits the tags and the note of a run, which are kept in its folder. */
export function NotesDialog({ row, onClose }: { readonly row: RunRow; readonly onClose: () => void }): JSX.Element {
  const { source } = useDashboard();
  const dialog = useRef<HTMLDialogElement>(null);
  const [tags, setTags] = useState(row.tags.join(", "));
  const [note, setNote] = useState(row.note);
  const [problem, setProblem] = useState<string>();
  useEffect(() => dialog.current!.showModal(), []);

  const save = async (): Promise<void> => {
    const list = tags.split(",").map((tag) => tag.trim());
    const body: NotesRequest = { tags: [...new Set(list.filter((tag) => tag !== ""))], note };
    try {
      await source.send("PUT", runPath(row.id, "/notes"), body);
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <dialog ref={dialog} aria-label="Tags and note" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <h2>{stripControls(row.id)}</h2>
        <label class="stack">
          Tags, separated by commas
          <input type="text" value={tags} onInput={(event) => setTags(event.currentTarget.value)} />
        </label>
        <label class="stack">
          Note
          <textarea rows={5} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </label>
        {problem !== undefined && <Banner kind="error">{problem}</Banner>}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            Save
          </button>
        </div>
      </form>
    </dialog>
  );
}
