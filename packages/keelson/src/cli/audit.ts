import { type EventQuery, type FoundEvent, findEvents } from '@keelson/access';
import { timeMs } from '@keelson/core';
import {
  type AnyOption,
  bool,
  duration,
  flagsHelp,
  mergeValues,
  parseArguments,
  textType,
  UsageError,
  wrongValue,
} from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { path } from '../config/option-types.ts';

const word = (name: string) => textType(name, (text) => text);

/** An option whose value is a point in time, or a duration before now. */
const since = textType(
  'TIME',
  (text, source) => {
    const instant = timeMs(text);
    if (instant !== undefined) return instant;
    if (/^\d{4}-/.test(text)) throw wrongValue(source, 'an instant such as 2025-01-31T12:00:00Z', text);
    return systemClock.now() - duration.parse(text, source);
  },
  (ms) => new Date(ms).toISOString(),
);

const option = (name: string, flag: string, type: AnyOption['type'], help: string, value?: unknown): AnyOption => ({
  name,
  flag,
  type,
  default: value,
  help,
});

const table: readonly AnyOption[] = [
  option(
    'file',
    '--file',
    path('FILE'),
    'the audit log; rotated files beside it are read too (default --audit-log-path)',
  ),
  option('who', '--who', bool, 'one line per user and verb, with the number of requests', false),
  option('verb', '--verb', word('VERB'), 'get, list, watch, create, update, patch, delete (includes deletecollection)'),
  option('resource', '--resource', word('RESOURCE'), 'plural, such as configmaps, deployments.apps or pods/exec'),
  option('name', '--name', word('NAME'), 'name of the object; includes requests that deleted a whole collection'),
  option('namespace', '--namespace', word('NAMESPACE'), 'namespace of the object; also -n'),
  option('user', '--user', word('USER'), 'the user that sent the request, or that it was made as'),
  option('since', '--since', since, 'only requests since this instant, or within this duration'),
];

type Values = Omit<EventQuery, 'since'> & { readonly file?: string; readonly who: boolean; readonly since?: number };

/** Prints the requests of an audit log that match the arguments. False when there are none. @throws UsageError */
export async function searchAudit(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<boolean> {
  const words = args.map((arg) => arg.replace(/^-n(?=$|=)/, '--namespace'));
  const { given, help } = parseArguments(words, table, 'keelson audit');
  if (help) {
    print(`keelson audit [filters]   search the audit log\n\n${flagsHelp(table)}`);
    return true;
  }
  const values = mergeValues(table, given) as unknown as Values;
  const { who, file = env['KEELSON_AUDIT_LOG_PATH'], ...query } = values;
  if (file === undefined || file === '-')
    throw new UsageError('keelson audit requires the path of the audit log: --file FILE');
  return who ? await printUsers(findEvents(file, query), print) : await printEvents(findEvents(file, query), print);
}

const columns = ['TIME', 'USER', 'VERB', 'RESOURCE', 'NAMESPACE', 'NAME', 'CODE', 'SOURCE'];
/** Number of rows that determine the widths of the columns; later rows are printed as they are found. */
const measuredRows = 1_000;

async function printEvents(events: AsyncIterable<FoundEvent>, print: (text: string) => void): Promise<boolean> {
  const rows: string[][] = [columns];
  let widths: readonly number[] | undefined;
  for await (const event of events) {
    const row = rowOf(event);
    if (widths !== undefined) print(lineOf(row, widths));
    else if (rows.push(row) > measuredRows) widths = printTable(rows, print);
  }
  if (rows.length === 1) print('no request matches\n');
  else if (widths === undefined) printTable(rows, print);
  return rows.length > 1;
}

function rowOf({ time, user, impersonated, verb, resource, namespace, name, code, sourceIPs }: FoundEvent): string[] {
  const shownUser = impersonated === '' ? user : `${user} as ${impersonated}`;
  const shownName = name === '' && verb === 'deletecollection' ? '(all)' : name;
  return [
    time.replace(/\.\d+Z$/, 'Z'),
    shownUser,
    verb,
    resource,
    namespace,
    shownName,
    String(code),
    sourceIPs.join(),
  ];
}

async function printUsers(events: AsyncIterable<FoundEvent>, print: (text: string) => void): Promise<boolean> {
  const counts = new Map<string, { readonly user: string; readonly verb: string; count: number; last: string }>();
  for await (const { user, impersonated, verb, time } of events) {
    const shown = impersonated === '' ? user : `${user} as ${impersonated}`;
    const key = `${shown}\n${verb}`;
    const known = counts.get(key) ?? { user: shown, verb, count: 0, last: '' };
    known.count += 1;
    known.last = time;
    counts.set(key, known);
  }
  if (counts.size === 0) print('no request matches\n');
  else {
    const rows = [...counts.values()].map(({ user, verb, count, last }) => [user, verb, String(count), last]);
    printTable([['USER', 'VERB', 'REQUESTS', 'LAST'], ...rows.sort((a, b) => (a.join() < b.join() ? -1 : 1))], print);
  }
  return counts.size > 0;
}

function printTable(rows: readonly (readonly string[])[], print: (text: string) => void): readonly number[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => shown(row[i] ?? '').length)));
  for (const row of rows) print(lineOf(row, widths));
  return widths;
}

/** Control characters in names that clients chose must not reach a terminal. */
const shown = (text: string) => text.replace(/[^\x20-\x7e\u00a0-\u{10ffff}]/gu, '?');

function lineOf(row: readonly string[], widths: readonly number[]): string {
  return `${row
    .map((cell, i) => shown(cell).padEnd(widths[i] ?? 0))
    .join('   ')
    .trimEnd()}\n`;
}
