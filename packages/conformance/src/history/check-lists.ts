import type { CallOf, IndexedHistory } from './indexed-history.ts';
import type { ListOperation, SeenObject, Selection } from './records.ts';
import { selects } from './selection.ts';
import type { TimeBounds } from './time-bounds.ts';
import type { Versions } from './versions.ts';
import type { Findings } from './violation.ts';

type Page = CallOf<ListOperation>;

/**
 * Each list must equal the model at its revision, in order and complete, at a revision that the call allowed.
 */
export function checkLists(history: IndexedHistory, versions: Versions, bounds: TimeBounds, findings: Findings): void {
  for (const pages of history.lists) checkList(pages, history.objects, versions, bounds, findings);
}

function checkList(
  pages: readonly Page[],
  objects: ReadonlyMap<number, SeenObject>,
  versions: Versions,
  bounds: TimeBounds,
  findings: Findings,
): void {
  const [first] = pages;
  if (first === undefined || first.reply.is !== 'ok') return;
  const revision = first.reply.revision ?? 0;
  checkRevision(first, revision, bounds, findings);
  const items: SeenObject[] = [];
  let complete = false;
  for (const page of pages) {
    if (page.reply.is !== 'ok') break;
    if (page.reply.revision !== revision) {
      findings.add('I9', `pages of one list are of revisions ${revision} and ${page.reply.revision}`, first, page);
      return;
    }
    for (const id of page.reply.items ?? []) {
      const object = objects.get(id);
      if (object !== undefined) items.push(object);
    }
    complete = page.reply.more !== true;
  }
  const wanted = modelList(versions, first.op.selection, revision);
  const length = complete ? Math.max(wanted.length, items.length) : items.length;
  for (let index = 0; index < length; index++) {
    const due = wanted[index];
    const got = items[index];
    if (due !== undefined && got !== undefined && due.key === got.key && due.revision === got.revision) continue;
    const invariant = pages.length > 1 ? 'I9' : 'I5';
    const text = `item ${index} of a list at revision ${revision} is ${name(got)}, must be ${name(due)}`;
    findings.add(invariant, text, ...pages, due, got);
    return;
  }
}

const name = (object: SeenObject | undefined) =>
  object === undefined ? 'missing' : `${object.key} of ${object.revision}`;

function checkRevision(page: Page, revision: number, bounds: TimeBounds, findings: Findings): void {
  const { at } = page.op;
  const floor = bounds.floor(page.start);
  if (at.at === 'latest' && revision < floor) {
    findings.add(
      'I5',
      `a consistent list is of revision ${revision}, although ${floor} had been seen before it began`,
      page,
    );
  } else if (at.at === 'exact' && revision !== at.revision) {
    findings.add('I5', `a list at exactly ${at.revision} is of revision ${revision}`, page);
  } else if (at.at === 'notOlderThan' && revision < at.revision) {
    findings.add('I5', `a list not older than ${at.revision} is of revision ${revision}`, page);
  }
  const ceiling = bounds.ceiling(page.end);
  if (revision > ceiling) {
    findings.add('I5', `a list is of revision ${revision}, but the write that made ${ceiling + 1} had not begun`, page);
  }
}

/** Returns the expected list of the selection at the revision. */
export function modelList(versions: Versions, selection: Selection, revision: number): SeenObject[] {
  const list: SeenObject[] = [];
  for (const key of versions.keys(selection.kind)) {
    const object = versions.at(key, revision);
    if (object !== undefined && selects(selection, object)) list.push(object);
  }
  return list;
}
