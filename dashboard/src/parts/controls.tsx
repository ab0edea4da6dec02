import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { Icon, type IconName } from "./icon.js";

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly (readonly [value: Value, text: string])[];
  readonly onChange: (value: Value) => void;
}

/** A row of buttons of which one is pressed. */
export function Segments<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A native select with its label. */
export function Select<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as Value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A button with an icon alone; `label` is its name and tooltip. */
export function IconButton(props: {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
  readonly pressed?: boolean;
}): JSX.Element {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={props.label}
      title={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}

/** A framed part of a view. */
export function Panel(props: {
  readonly title?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly className?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  const id = useId();
  return (
    <section class={`panel ${props.className ?? ""}`} aria-labelledby={props.title === undefined ? undefined : id}>
      {(props.title !== undefined || props.tools !== undefined) && (
        <header class="panel-header">
          <h2 id={id}>{props.title}</h2>
          <div class="panel-tools">{props.tools}</div>
        </header>
      )}
      {props.children}
    </section>
  );
}

/** What a view shows in place of data: why there is none and what to do. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** A message across the view. */
export function Banner(props: {
  readonly kind: "warning" | "error" | "info";
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`banner ${props.kind}`} role={props.kind === "info" ? "status" : "alert"}>
      <Icon name={props.kind === "info" ? "info" : "warning"} />
      <div>{props.children}</div>
    </div>
  );
}

/** Numbers with their names, in a row. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface SeedFieldProps {
  readonly seed: number;
  readonly onSeed: (seed: number) => void;
}

/** The seed of an episode. */
export function SeedField({ seed, onSeed }: SeedFieldProps): JSX.Element {
  return (
    <label class="field">
      Seed
      <input
        type="number"
        class="narrow"
        min="0"
        value={seed}
        onInput={(event) => onSeed(Math.max(0, Math.trunc(event.currentTarget.valueAsNumber || 0)))}
      />
    </label>
  );
}
