import test, { type ExecutionContext } from 'ava';
import {
  type AnyOption,
  flagsHelp,
  mergeValues,
  parseArguments,
  parseConfigDocument,
  parseFields,
  parseVariables,
} from '../../src/options/option-table.ts';
import { didYouMean, didYouMeanOneOf, UsageError } from '../../src/options/usage-error.ts';
import {
  bool,
  duration,
  integer,
  listOf,
  oneOf,
  rejectUnknownKeys,
  text,
  wholeNumber,
} from '../../src/options/value-types.ts';

const row = (name: string, type: AnyOption['type'], value: unknown, traits: Partial<AnyOption> = {}): AnyOption => ({
  name,
  flag: `--${name}`,
  variable: `APP_${name.toUpperCase()}`,
  field: name,
  type,
  default: value,
  help: `about ${name}`,
  ...traits,
});
const items = listOf('ITEM', (item, _source, directory) => (directory === undefined ? item : `${directory}/${item}`));
const table = [
  row('name', text, 'none'),
  row('dry-run', bool, false),
  row('level', oneOf('LEVEL', ['low', 'high']), 'low', { deprecated: 'use --name' }),
  row('size', integer('SIZE', 1, 99), 5),
  row('item', items, []),
  { name: 'wait', field: 'wait', type: duration, default: undefined, help: 'about wait' },
];
const flags = (...args: string[]) => Object.fromEntries(parseArguments(args, table, 'app').given);
const refuses = (t: ExecutionContext, run: () => unknown, message: string) =>
  t.throws(run, { instanceOf: UsageError, message });

test('a flag takes its value from the same or the next argument, a switch only from the same', (t) => {
  t.deepEqual(flags('--name=a', '--size', '7', '--dry-run'), { name: 'a', size: 7, 'dry-run': true });
  t.deepEqual(flags('--dry_run=false', '--name', '-x', '--item=a,b', '--item', 'c'), {
    'dry-run': false,
    name: '-x',
    item: ['a', 'b', 'c'],
  });
  t.deepEqual(flags('--name', '--unknown', '--name=a=b'), { name: 'a=b' });
  t.true(parseArguments(['--help'], table, 'app').help);
  t.true(parseArguments(['--size=1', '-h'], table, 'app').help);
});

test('a wrong argument is rejected with one sentence that names it', (t) => {
  const rule = 'options begin with -- and a switch accepts its value as --name=value';
  for (const [args, message] of [
    [['--nam=a'], 'unknown option --nam; did you mean --name?'],
    [['--quite-different'], 'unknown option --quite-different; see app --help'],
    [['--name'], '--name requires a value: --name string'],
    [['--name', '--dry-run'], '--name requires a value: --name string'],
    [['--dry-run', 'true'], `unexpected argument "true"; ${rule}`],
    [['-name=x'], `unexpected argument "-name=x"; ${rule}`],
    [['--'], `unexpected argument "--"; ${rule}`],
    [['--dry-run=yes'], '--dry-run must be true or false, not "yes"'],
    [['--size=x'], '--size must be a whole number, not "x"'],
    [['--size=100'], '--size must be between 1 and 99, not 100'],
    [['--level=hihg'], '--level: unsupported value "hihg"; did you mean high?'],
    [['--level=medium'], '--level: unsupported value "medium"; use one of low, high'],
    [['--item="a'], '--item has a misplaced quote: "\\"a"'],
  ] as const) {
    refuses(t, () => flags(...args), message);
  }
});

test('variables with the prefix of the program are options; those of other programs are ignored', (t) => {
  const parse = (env: Record<string, string>) => Object.fromEntries(parseVariables(env, table, 'APP_', ['APP_TEST_']));
  t.deepEqual(parse({ APP_NAME: 'a', APP_ITEM: 'b,c', APP_TEST_X: '1', PATH: '/bin' }), {
    name: 'a',
    item: ['b', 'c'],
  });
  refuses(t, () => parse({ APP_NAMES: 'a' }), 'unknown environment variable APP_NAMES; did you mean APP_NAME?');
  refuses(t, () => parse({ APP_SIZE: '0' }), 'APP_SIZE must be between 1 and 99, not 0');
});

test('fields of a config file have the types of YAML, and relative paths refer to its directory', (t) => {
  const parse = (yaml: string) =>
    Object.fromEntries(parseFields(parseConfigDocument(Buffer.from(yaml), 'f'), table, 'f', '/d'));
  t.deepEqual(parse('name: a\ndry-run: true\nsize: 7\nitem: [x]\nwait: 1m\n'), {
    name: 'a',
    'dry-run': true,
    size: 7,
    item: ['/d/x'],
    wait: 60_000,
  });
  for (const [yaml, message] of [
    ['nmae: a', 'f: unknown key nmae; did you mean name?'],
    ['name: 1', 'f: name must be a text, not 1'],
    ['dry-run: "true"', 'f: dry-run must be true or false, not "true"'],
    ['size: "7"', 'f: size must be a number, not "7"'],
    ['item: x', 'f: item must be a list of texts, not "x"'],
    ['item: [{}]', 'f: item must be a list of texts, not an object'],
    ['wait: 5', 'f: wait must be a duration such as 10s, not 5'],
    ['wait: 5d', 'f: wait must be a duration such as 10s or 1h30m: unknown unit "d" in duration "5d"'],
    ['name: a\nname: b', 'f contains name twice'],
    ['- a', 'f must contain an object'],
  ] as const) {
    refuses(t, () => parse(yaml), message);
  }
  t.throws(() => parse('name: ['), { instanceOf: UsageError, message: /^f is not valid YAML or JSON: / });
});

test('the first source with a value takes precedence, and the default applies without any', (t) => {
  const merged = mergeValues(
    table,
    new Map([['name', 'a']]),
    new Map<string, unknown>([
      ['name', 'b'],
      ['size', 9],
    ]),
  );
  t.deepEqual(merged, { name: 'a', size: 9, 'dry-run': false, level: 'low', item: [], wait: undefined });
});

test('the help text has type, default and description of every flag', (t) => {
  t.is(
    flagsHelp(table.slice(0, 3)),
    [
      '  --name string (default none)\n      about name\n',
      '  --dry-run bool (default false)\n      about dry-run\n',
      '  --level LEVEL (default low)\n      about level Deprecated: use --name.\n',
    ].join(''),
  );
  t.is(flagsHelp(table.slice(5)), '');
});

test('a suggestion is the known name with the fewest edits, and never a name that differs in a third of its letters', (t) => {
  t.is(didYouMean('Storge', ['state', 'storage', 'stored']), '; did you mean storage?');
  t.is(didYouMean('abcdefghi', ['xyzdefghi', 'xyzwefghi']), '; did you mean xyzdefghi?');
  t.is(didYouMean('abcdefghi', ['xyzwefghi']), '');
  t.is(didYouMean('z'.repeat(81), ['z'.repeat(80)]), '', 'long names are not compared');
  t.is(didYouMeanOneOf('flannel', ['', 'cni']), '; use one of (empty), cni');
});

test('keys and numbers of nested objects are checked', (t) => {
  t.notThrows(() => rejectUnknownKeys({ a: 1 }, ['a', 'b'], 'x'));
  refuses(t, () => rejectUnknownKeys({ hots: 1 }, ['host'], 'x'), 'x has no key hots; did you mean host?');
  t.is(wholeNumber(3, 'x', 3), 3);
  refuses(t, () => wholeNumber(2, 'x', 3), 'x must be a whole number of at least 3, not 2');
  refuses(t, () => wholeNumber('3', 'x'), 'x must be a whole number of at least 0, not "3"');
});
