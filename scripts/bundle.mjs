// Puts the modules of each package whose exports name `dist/bundle` into one file (ADR 19). Packages stay apart, so
// that a class is the same for whoever imports it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/**
 * Libraries of many small modules, which become a part of the file of who uses them; their licences are put beside it.
 */
const inlined = /^(inversify$|@inversifyjs\/)/;

/** A library or another package; what begins otherwise is a module of this one. */
const outside = (id) => /^[^./\\]/.test(id) && !inlined.test(id);

/** Entries of a package by the name of their file in `dist/bundle`; none when it is not bundled. */
function entriesOf({ exports, bin = {} }) {
  const files = [exports?.['.']?.default, ...Object.values(bin)].filter((file) => file?.startsWith('./dist/bundle/'));
  const source = (name) => (name === 'index' ? 'src/index.ts' : `src/bin/${name}.ts`);
  return Object.fromEntries(files.map((file) => basename(file, '.js')).map((name) => [name, source(name)]));
}

/** The licences of the libraries that modules come from. */
function licences(moduleIds) {
  const library = /^.*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)\//;
  const folders = new Map(
    moduleIds.flatMap((id) => [library.exec(id)].filter(Boolean)).map(([folder, name]) => [name, folder]),
  );
  return [...folders]
    .sort()
    .map(([name, folder]) => `${name}\n\n${readFileSync(`${folder}LICENSE`, 'utf8').trim()}\n`)
    .join('\n\n');
}

async function bundlePackage(folder, entries) {
  const build = await rolldown({
    cwd: folder,
    input: entries,
    platform: 'node',
    external: outside,
    tsconfig: false,
  });
  const { output } = await build.write({
    dir: `${folder}dist/bundle`,
    format: 'esm',
    sourcemap: true,
    cleanDir: true,
    chunkFileNames: '[name].js',
  });
  await build.close();
  const texts = licences(output.flatMap(({ moduleIds = [] }) => moduleIds));
  if (texts !== '') writeFileSync(`${folder}dist/bundle/LICENSES.txt`, texts);
}

const root = fileURLToPath(new URL('..', import.meta.url));
const folders = ['packages', 'adapters'].flatMap((group) =>
  readdirSync(`${root}${group}`).map((name) => `${root}${group}/${name}/`),
);
await Promise.all(
  folders
    .filter((folder) => existsSync(`${folder}package.json`))
    .map((folder) => [folder, entriesOf(JSON.parse(readFileSync(`${folder}package.json`, 'utf8')))])
    .filter(([, entries]) => Object.keys(entries).length > 0)
    .map(([folder, entries]) => bundlePackage(folder, entries)),
);
