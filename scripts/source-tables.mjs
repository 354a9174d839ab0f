// Tables of the reference pages whose content stands in sources as literals: metrics where they are registered, and
// codes of errors with the lines of their doc comments.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const text = "'(?:[^'\\\\]|\\\\.)*'";
const registration = new RegExp(
  `\\b(counter|gauge|histogram)\\((?:\\{([^}]*)\\}|\\s*(${text}),\\s*(${text})\\s*)\\)`,
  'g',
);
const literal = (source) => source?.slice(1, -1).replaceAll(/\\(.)/g, '$1');
const field = (object, name) => literal(new RegExp(`\\b${name}:\\s*(${text})`).exec(object)?.[1]);

/** The labels in an object literal, or those of a constant of the file. */
function labelsOf(object, source) {
  const own = /\blabels(?::\s*([^,}\]]*\[[^\]]*\]|\w+))?/.exec(object);
  if (own === null) return [];
  const value = own[1]?.startsWith('[')
    ? own[1]
    : new RegExp(`\\b${own[1] ?? 'labels'} = (\\[[^\\]]*\\])`).exec(source)?.[1];
  return [...(value ?? '').matchAll(/'(\w+)'/g)].map(([, label]) => label);
}

/**
 * Every metric that a source of the packages registers, by name: type, help, labels and package.
 *
 * @throws Error for a metric whose name or help is not a literal
 */
export function metrics() {
  const paths = [':(glob)packages/*/src/**/*.ts', ':(glob)adapters/*/src/**/*.ts'];
  const files = execFileSync('git', ['ls-files', ...paths], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n');
  const found = new Map();
  for (const file of files) {
    const source = readFileSync(root + file, 'utf8');
    for (const [whole, type, object = '', first, second] of source.matchAll(registration)) {
      // A function whose parameters are the name and the help of a metric. Its calls contain the literals.
      if (/\{ name, help\b/.test(whole)) continue;
      const name = literal(first) ?? field(object, 'name');
      const help = literal(second) ?? field(object, 'help');
      if (name === undefined || help === undefined) throw new Error(`${file}: ${whole}: not literals`);
      const of = file.split('/').slice(0, 2).join('/');
      const labels = labelsOf(first === undefined ? object : 'labels', source);
      const known = found.get(name);
      found.set(name, { name, type, help, labels, packages: [...new Set([...(known?.packages ?? []), of])] });
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Codes and their meanings: the list in the doc comment of a constant, which must explain each of its keys. */
export function codes(file, constant) {
  const source = readFileSync(root + file, 'utf8');
  const [, comment = '', keys = ''] =
    new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\nexport const ${constant} = \\{([^}]*)\\}`).exec(source) ?? [];
  const lines = comment
    .replaceAll(/\n \* ?/g, '\n')
    .split(/\n(?=- )/)
    .slice(1);
  const rows = lines.map((line) => {
    const [, code = '', meaning = ''] = /^- `(\w+)`: ([\s\S]*)$/.exec(line.split('\n\n')[0].trim()) ?? [];
    return [code, meaning.replaceAll(/\s+/g, ' ')];
  });
  const names = [...keys.matchAll(/^ {2}(\w+): /gm)].map(([, name]) => name);
  if (names.length === 0 || names.join() !== rows.map(([code]) => code).join())
    throw new Error(`${file}: the comment of ${constant} does not explain exactly its codes`);
  return rows;
}
