import { isConditionTrue, withCondition } from '@keelson/controller-kit';
import type { Clock } from '@keelson/core/runtime';
import type { CustomResourceDefinition } from '@keelson/kinds';

type Status = NonNullable<CustomResourceDefinition['status']>;
type Names = CustomResourceDefinition['spec']['names'];

/** Names that are already used in an API group. */
export interface UsedNames {
  /** Plural, singular and short names. */
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

/** The names of built-in kinds and the accepted names of other definitions in an API group. */
export function usedNames(others: Iterable<CustomResourceDefinition>, builtin: readonly Names[]): UsedNames {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const names of [...builtin, ...[...others].flatMap(({ status }) => status?.acceptedNames ?? [])]) {
    for (const name of [names.plural, names.singular ?? '', ...(names.shortNames ?? [])]) resources.add(name);
    kinds.add(names.kind);
    kinds.add(names.listKind ?? `${names.kind}List`);
  }
  for (const set of [resources, kinds]) set.delete('');
  return { resources, kinds };
}

/**
 * The status of a definition after its names have been compared with those in use. Names that are free are granted even
 * when others are not. Source: `apiextensions-apiserver/pkg/controller/status/naming_controller.go`.
 */
export function withNames({ spec, status = {} }: CustomResourceDefinition, used: UsedNames, clock: Clock): Status {
  const { names: wanted } = spec;
  const granted: Partial<Names> = status.acceptedNames ?? {};
  const accepted: Names = { ...granted, plural: granted.plural ?? '', kind: granted.kind ?? '' };
  let conflict: { readonly reason: string; readonly message: string } | undefined;
  const grant = (word: 'plural' | 'singular' | 'kind' | 'listKind', taken: ReadonlySet<string>, reason: string) => {
    const name = wanted[word] ?? '';
    if (name !== granted[word] && taken.has(name))
      conflict = { reason, message: `${JSON.stringify(name)} is already in use` };
    else accepted[word] = name;
  };
  grant('plural', used.resources, 'PluralConflict');
  grant('singular', used.resources, 'SingularConflict');
  const own = granted.shortNames ?? [];
  const taken = (wanted.shortNames ?? []).filter((name) => !own.includes(name) && used.resources.has(name));
  if (taken.length > 0) {
    const texts = taken.map((name) => `${JSON.stringify(name)} is already in use`);
    conflict = {
      reason: 'ShortNamesConflict',
      message: texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`,
    };
  } else if (wanted.shortNames === undefined) delete accepted.shortNames;
  else accepted.shortNames = wanted.shortNames;
  grant('kind', used.kinds, 'KindConflict');
  grant('listKind', used.kinds, 'ListKindConflict');
  if (wanted.categories === undefined) delete accepted.categories;
  else accepted.categories = wanted.categories;

  const free = conflict === undefined;
  const { reason, message } = conflict ?? { reason: 'NoConflicts', message: 'no conflicts found' };
  let conditions = withCondition(
    status.conditions,
    { type: 'NamesAccepted', status: free ? 'True' : 'False', reason, message },
    clock,
  );
  if (!isConditionTrue(status.conditions, 'Established')) {
    const established = free
      ? { reason: 'Installing', message: 'the initial names have been accepted' }
      : { reason: 'NotAccepted', message: 'not all names are accepted' };
    conditions = withCondition(conditions, { type: 'Established', status: 'False', ...established }, clock);
  }
  return { ...status, conditions: [...conditions], acceptedNames: accepted };
}

/** The status with the condition Established, for a definition that all servers serve. */
export function withEstablished(status: Status, clock: Clock): Status {
  const condition = {
    type: 'Established',
    status: 'True',
    reason: 'InitialNamesAccepted',
    message: 'the initial names have been accepted',
  };
  return { ...status, conditions: [...withCondition(status.conditions, condition, clock)] };
}

const versionPattern = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/;

/** Order of versions: stable before beta before alpha, newer before older, all others last by name. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [versionPattern.exec(a), versionPattern.exec(b)];
  if (left === null || right === null) return left ? -1 : right ? 1 : a < b ? -1 : 1;
  const rank = ([, , stage]: RegExpExecArray) => (stage === undefined ? 0 : stage === 'beta' ? 1 : 2);
  return rank(left) - rank(right) || Number(right[1]) - Number(left[1]) || Number(right[3] ?? 0) - Number(left[3] ?? 0);
}
