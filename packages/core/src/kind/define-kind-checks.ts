import type { KindDefinition, Verb } from './kind-definition.ts';
import { type MessageNode, messageNode } from './schema-walk.ts';

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const groupName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** Kubernetes permits hyphens; its own tests use them. */
const kindWord = /^[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/;

function repeated(words: readonly string[]): string | undefined {
  return words.find((word, index) => words.indexOf(word) !== index);
}

/** A text for each invalid name and repeated verb of a kind declaration. */
function nameProblems(kind: KindDefinition): string[] {
  const problems: string[] = [];
  if (!kindWord.test(kind.kind)) problems.push('kind must consist of letters, digits and hyphens');
  if (kind.group !== '' && !groupName.test(kind.group)) problems.push('group must be empty or a lower-case DNS name');
  if (!dnsLabel.test(kind.version)) problems.push('version must be a lower-case word such as v1');
  for (const word of [kind.names.plural, kind.names.singular, ...kind.names.shortNames, ...kind.names.categories]) {
    if (!dnsLabel.test(word)) problems.push(`the name ${JSON.stringify(word)} must be a lower-case word`);
  }
  const verb = repeated(kind.verbs);
  if (verb !== undefined) problems.push(`the verb ${verb} is given twice`);
  return problems;
}

function subresourceProblems(kind: KindDefinition, message: MessageNode): string[] {
  const problems: string[] = [];
  const names = kind.subresources.map((subresource) => subresource.name);
  const twice = repeated(names);
  if (twice !== undefined) problems.push(`the subresource ${twice} is declared twice`);
  for (const { type, name } of kind.subresources) {
    if (!dnsLabel.test(name)) problems.push(`the subresource name ${JSON.stringify(name)} must be a lower-case word`);
    if (type === 'status' && !('status' in message.fields))
      problems.push('the status subresource needs a field status');
    if (type === 'projection' && name === 'scale' && !('spec' in message.fields)) {
      problems.push('the scale subresource needs a field spec');
    }
  }
  return problems;
}

/** Strategy options that have an effect only when the kind has the status subresource. */
const statusOptions = [
  'keepsStatusOnCreate',
  'statusKeepsMetadata',
  'prepareForStatusUpdate',
  'validateStatusUpdate',
] as const;

function strategyProblems({ strategy, subresources, verbs }: KindDefinition): string[] {
  const problems: string[] = [];
  const status = subresources.find(({ name }) => name === 'status');
  if (status !== undefined && status.type !== 'status') {
    problems.push(`the subresource status has the type ${status.type}; its type must be status`);
  } else if (status !== undefined && strategy.statusSubresource === false) {
    problems.push('strategy.statusSubresource is false, but the subresource status is declared');
  } else if (status === undefined && strategy.statusSubresource === true) {
    problems.push(
      'strategy.statusSubresource is true, but no subresource status is declared, so that no request could set the status',
    );
  }
  for (const option of statusOptions) {
    if (status === undefined && strategy[option]) problems.push(`strategy.${option} needs the subresource status`);
  }
  if (strategy.allowCreateOnUpdate && !(verbs.includes('create') && verbs.includes('update'))) {
    problems.push('strategy.allowCreateOnUpdate needs the verbs create and update');
  }
  return problems;
}

function storageProblems(kind: KindDefinition): string[] {
  const target = kind.storage?.kind;
  if (!target) return [];
  const problems: string[] = [];
  if (target.storage) problems.push(`it is stored as ${target.kind}, which is itself stored as another kind`);
  if (target.scope !== kind.scope) problems.push(`it is stored as ${target.kind}, which has another scope`);
  for (const option of ['generation', 'statusSubresource'] as const) {
    const [own, stored] = [kind.strategy[option], target.strategy[option]];
    if (own !== stored) {
      problems.push(
        `strategy.${option} is ${own}, but ${stored} for ${target.kind} of ${target.apiVersion}, as which it is stored`,
      );
    }
  }
  return problems;
}

/** The verbs of a kind that is not stored. */
export function virtualVerbs({ read }: { readonly read?: unknown }): readonly Verb[] {
  return read === undefined ? ['create'] : ['get', 'list'];
}

function virtualProblems(kind: KindDefinition): string[] {
  if (!kind.virtual) return [];
  const problems: string[] = [];
  if (kind.storage) problems.push('a virtual kind has no storage');
  if (kind.subresources.length > 0) problems.push('a virtual kind has no subresources');
  const { create, read } = kind.virtual;
  if ((create === undefined) === (read === undefined))
    problems.push('a virtual kind has one of the functions create and read');
  const verbs: readonly string[] = virtualVerbs(kind.virtual);
  if (kind.verbs.some((verb) => !verbs.includes(verb)))
    problems.push(`the verbs of this virtual kind are ${verbs.join(' and ')}`);
  if (kind.strategy.generation !== 'none') problems.push('a virtual kind has no generation, because nothing is stored');
  return problems;
}

/** Texts of all contradictions in a finished definition; empty when there are none. */
export function definitionProblems(kind: KindDefinition): string[] {
  const message = messageNode(kind.schema);
  if (!message) return ['the schema must be a message'];
  return [
    ...nameProblems(kind),
    ...subresourceProblems(kind, message),
    ...strategyProblems(kind),
    ...storageProblems(kind),
    ...virtualProblems(kind),
  ];
}
