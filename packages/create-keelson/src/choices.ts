import { createInterface } from 'node:readline/promises';
import { defineKind, dns1123LabelErrors, dns1123SubdomainErrors, s } from '@keelson/core';
import { bool, flagsHelp, listOf, mergeValues, oneOf, parseArguments, text, UsageError } from '@keelson/core/internal';

/** The stores that a project can begin with. */
const storages = ['lmdb', 'memory', 'postgres', 'etcd'] as const;

/** The names of one kind of the project. */
export interface KindChoice {
  /** Name of the kind: `BackupPlan`. */
  readonly kind: string;
  /** Resource name: `backupplans`. */
  readonly plural: string;
  /** Base of file names: `backup-plan`. */
  readonly file: string;
  /** Name of variables: `backupPlan`. */
  readonly variable: string;
}

/** Everything that determines the files of a project. */
export interface ProjectChoices {
  readonly name: string;
  readonly group: string;
  readonly storage: (typeof storages)[number];
  readonly kinds: readonly KindChoice[];
  readonly controller: boolean;
  readonly docker: boolean;
}

/** The result of the command line: what to create, and what to do with it. */
export interface Command {
  readonly choices: ProjectChoices;
  /** Install dependencies and run the tests. */
  readonly install: boolean;
}

function kindName(given: unknown, source: string): string {
  const word = String(given);
  if (!/^[A-Z][A-Za-z0-9]{0,62}$/.test(word))
    throw new UsageError(`${source}: ${JSON.stringify(word)} is not the name of a kind, such as BackupPlan`);
  return word;
}

const options = [
  {
    name: 'storage',
    flag: '--storage',
    type: oneOf('STORE', storages),
    default: 'lmdb',
    help: 'store of the objects: a directory, memory, PostgreSQL or etcd',
  },
  {
    name: 'kinds',
    flag: '--kinds',
    type: listOf('KINDS', kindName),
    default: ['Widget'],
    help: 'kinds to declare, separated by commas',
  },
  { name: 'group', flag: '--group', type: text, default: 'example.com', help: 'API group of the kinds' },
  { name: 'controller', flag: '--controller', type: bool, default: true, help: 'a controller for each kind' },
  { name: 'docker', flag: '--docker', type: bool, default: false, help: 'Dockerfile and compose file' },
  { name: 'install', flag: '--install', type: bool, default: true, help: 'install dependencies and run the tests' },
  { name: 'yes', flag: '--yes', type: bool, default: false, help: 'ask nothing; use defaults for absent options' },
];

/** The help text. */
export const help = `Usage: npm create keelson NAME -- [options]

Creates a project in the folder NAME: kinds, controllers, a configuration, tests and a README. Without options a
terminal is asked for them.

${flagsHelp(options)}`;

interface Values {
  readonly storage: ProjectChoices['storage'];
  readonly kinds: readonly string[];
  readonly group: string;
  readonly controller: boolean;
  readonly docker: boolean;
  readonly install: boolean;
  readonly yes: boolean;
}

/** Asks one question; an empty answer is the default. */
export type Ask = (question: string, byDefault: string) => Promise<string>;

/** Asks a question on the terminal. */
export const askTerminal: Ask = async (question, byDefault) => {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question(`${question} (${byDefault}): `)).trim() || byDefault;
  } finally {
    terminal.close();
  }
};

/**
 * Reads the command line. When it contains no flag, `ask`, if given, asks for all values. Returns undefined when help
 * is requested.
 *
 * @throws UsageError
 */
export async function readCommand(words: readonly string[], ask: Ask | undefined): Promise<Command | undefined> {
  const [first] = words;
  const named = first !== undefined && !first.startsWith('-') ? first : undefined;
  const flags = named === undefined ? words : words.slice(1);
  const { given, help: wantsHelp } = parseArguments(flags, options, 'create-keelson');
  if (wantsHelp) return undefined;
  const asks = given.get('yes') === true || given.size > 0 ? undefined : ask;
  const name = named ?? (await asks?.('Name of the project', 'my-plane'));
  if (name === undefined) throw new UsageError('the name of the project is missing; use npm create keelson NAME');
  checked(name, 'the name of the project', dns1123LabelErrors(name));
  const answered = asks === undefined ? given : await answers(asks);
  const values = mergeValues(options, answered) as unknown as Values;
  checked(values.group, '--group', dns1123SubdomainErrors(values.group));
  if (!values.group.includes('.'))
    throw new UsageError(`--group ${values.group} is not a domain; use one of yours, such as example.com`);
  const kinds = values.kinds.map((kind) => kindChoice(kind, values.group));
  const repeated = kinds.find(({ plural }, index) => kinds.findIndex((other) => other.plural === plural) < index);
  if (repeated !== undefined) throw new UsageError(`--kinds contains two kinds with the resource ${repeated.plural}`);
  const { storage, group, controller, docker, install } = values;
  return { choices: { name, group, storage, kinds, controller, docker }, install };
}

async function answers(ask: Ask) {
  const words: string[] = [];
  for (const { flag, help: meaning, default: byDefault, type } of options.slice(0, -2)) {
    const shown = typeof byDefault === 'boolean' ? (byDefault ? 'yes' : 'no') : String(byDefault);
    const extent = type.name === 'STORE' ? `${meaning} [${storages.join(', ')}]` : meaning;
    const answer = await ask(`${extent[0]?.toUpperCase()}${extent.slice(1)}`, shown);
    const isYes = /^y(?:es)?$/i.test(answer);
    words.push(`${flag}=${isYes || /^no?$/i.test(answer) ? String(isYes) : answer}`);
  }
  return parseArguments(words, options, 'create-keelson').given;
}

function checked(value: string, source: string, errors: readonly string[]): void {
  if (errors.length > 0) throw new UsageError(`${source}: ${JSON.stringify(value)} is invalid: ${errors[0]}`);
}

function kindChoice(kind: string, group: string): KindChoice {
  const { names } = defineKind({ group, version: 'v1', kind, schema: s.object({}) });
  const file = kind.replaceAll(/(?<=[a-z0-9])[A-Z]/g, '-$&').toLowerCase();
  return { kind, plural: names.plural, file, variable: `${kind[0]?.toLowerCase()}${kind.slice(1)}` };
}
