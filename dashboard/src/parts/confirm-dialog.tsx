import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface ConfirmDialogProps {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly onCancel: () => void;
  readonly onConfirm: () => void;
}

/** Asks before something is done to a run. */
export function ConfirmDialog({ title, text, button, onCancel, onConfirm }: ConfirmDialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={title} onCancel={onCancel}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <h2>{title}</h2>
        <p class="soft">{text}</p>
        <div class="actions">
          <button type="button" class="button" onClick={onCancel}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            {button}
          </button>
        </div>
      </form>
    </dialog>
  );
}
