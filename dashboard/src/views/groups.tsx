import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { EpisodeDetail, Group, GroupList } from "../../../src/app/dashboard/api.js";
import type { ViewProps } from "../route.js";
import { useDashboard, useGet, useLiveEvent } from "../data/context.js";
import { runPath } from "../data/source.js";
import { showSigned } from "../format.js";
import { Banner, Empty, Panel, Select } from "../parts/controls.js";
import { RunPicker } from "../parts/run-picker.js";
import { promptText } from "../parts/turn-text.js";
import { linkTo, navigate } from "../route.js";
import { stripControls } from "../text/ansi.js";

/** Groups that are shown at first, and added by each click. */
const PAGE_SIZE = 12;

/** Characters of a member's completions. */
const MAX_TEXT = 400;

/** The groups of an update: members side by side with their rewards and advantages. */
export function GroupsView({ route }: ViewProps): JSX.Element {
  const { selected } = useDashboard();
  const run = selected[0];
  const step = route.params.get("step");
  const query = step === null ? "" : `?step=${encodeURIComponent(step)}`;
  const { data, error, reload } = useGet<GroupList>(run === undefined ? undefined : runPath(run, `/groups${query}`));
  const [limit, setLimit] = useState(PAGE_SIZE);
  useLiveEvent("episodes", (event) => event.run === run && step === null && reload());
  const steps = [...(data?.steps ?? [])].reverse().map((value) => [String(value), String(value)] as const);
  const silent = data?.groups.filter(({ hasSignal }) => !hasSignal).length ?? 0;
  return (
    <div class="view">
      <header class="view-header">
        <h1>Groups</h1>
        <RunPicker view="groups" />
        {data && steps.length > 0 && (
          <Select
            label="Update"
            value={String(data.step)}
            options={steps}
            onChange={(value) => navigate(linkTo("groups", { run, step: value }), { replace: true })}
          />
        )}
        {data && data.groups.length > 0 && (
          <span class="soft">
            {data.groups.length} {data.groups.length === 1 ? "group" : "groups"}, {silent} without signal
          </span>
        )}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {data && data.groups.length === 0 && (
        <Empty title="No groups">
          GRPO and its relatives compare the members of groups; this run has none recorded.
        </Empty>
      )}
      {data &&
        // Those that are learned from first.
        [...data.groups]
          .sort((a, b) => Number(b.hasSignal) - Number(a.hasSignal))
          .slice(0, limit)
          .map((group) => <GroupPanel key={group.group} run={run} group={group} />)}
      {data && data.groups.length > limit && (
        <button type="button" class="button" onClick={() => setLimit(limit + PAGE_SIZE)}>
          Show more groups
        </button>
      )}
    </div>
  );
}

function GroupPanel({ run, group }: { readonly run: string; readonly group: Group }): JSX.Element {
  const { members, hasSignal } = group;
  const largest = Math.max(1e-9, ...members.map(({ row }) => Math.abs(row.advantage ?? 0)));
  const first = members[0]?.turns[0];
  return (
    <Panel
      className={hasSignal ? "group" : "group silent"}
      title={`Group ${group.group}`}
      tools={!hasSignal && <span class="tag warn">no signal: all rewards are equal</span>}
    >
      {first && <pre class="prompt short">{promptText(first, members[0].vocabulary, false)}</pre>}
      <div class="members">
        {members.map((member) => (
          <Member key={member.row.id} run={run} member={member} largest={largest} />
        ))}
      </div>
    </Panel>
  );
}

interface MemberProps {
  readonly run: string;
  readonly member: EpisodeDetail;
  /** Largest absolute advantage of the group. */
  readonly largest: number;
}

function Member({ run, member: { row, turns }, largest }: MemberProps): JSX.Element {
  const text = stripControls(turns.map((turn) => turn.text).join("\n"));
  const advantage = row.advantage ?? 0;
  const width = `${(Math.abs(advantage) / largest) * 50}%`;
  return (
    <a class="member" href={linkTo("episodes", { run, episode: row.id })}>
      <span class="member-head">
        <span>
          <small>Reward</small>
          <strong class="number">{showSigned(row.return)}</strong>
        </span>
        <span class="right">
          <small>Advantage</small>
          <strong class="number">{showSigned(row.advantage)}</strong>
        </span>
      </span>
      <span class="advantage-bar" aria-hidden="true">
        <i class={advantage < 0 ? "negative" : "positive"} style={{ width }} />
      </span>
      <pre>{text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text}</pre>
    </a>
  );
}
