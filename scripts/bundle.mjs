// Puts the modules of each package whose exports name `dist/bundle` into one file (ADR 19). Packages stay apart, so
// that a class is the same for every importer.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/** True for libraries and other packages, which stay outside of the bundle. The id of an own module is a path. */
const outside = (id) => /^[^./\\]/.test(id);

/** Entries of a package by the name of their file in `dist/bundle`; none when it is not bundled. */
function entriesOf({ exports, bin = {}, imports = {} }) {
  const named = (files, folder) =>
    files
      .filter((file) => file?.startsWith('./dist/bundle/'))
      .map((file) => basename(file, '.js'))
      .map((name) => [name, `${folder}/${name}.ts`]);
  const entryPoints = Object.values(exports ?? {}).map((target) => target.default);
  const programs = Object.values(imports).map(({ default: bundle, 'keelson-modules': module }) => [
    basename(bundle, '.js'),
    module.replace('./dist/', '').replace(/\.js$/, '.ts'),
  ]);
  return Object.fromEntries([...named(entryPoints, 'src'), ...named(Object.values(bin), 'src/bin'), ...programs]);
}

/**
 * Files for modules that are always loaded together. Each contains the given module and all that it imports, except
 * what the files before it contain. The bundler alone creates 25 files, which make the start a twentieth longer.
 */
const joinedFiles = {
  keelson: { version: 'src/base/version.ts', plane: 'src/index.ts', server: 'src/cli/run-server.ts' },
};

/** The joined files of a package; a file with higher priority has the modules that several of them import. */
const groupsOf = (folder) =>
  Object.entries(joinedFiles[basename(folder)] ?? {}).map(([name, module], index, all) => {
    if (!existsSync(`${folder}${module}`)) throw new Error(`${folder} has no module ${module}`);
    return { name, test: (id) => id === `${folder}${module}`, priority: all.length - index };
  });

async function bundlePackage(folder, entries) {
  const build = await rolldown({
    cwd: folder,
    input: entries,
    platform: 'node',
    external: outside,
    tsconfig: false,
  });
  await build.write({
    dir: `${folder}dist/bundle`,
    format: 'esm',
    sourcemap: true,
    cleanDir: true,
    chunkFileNames: '[name].js',
    codeSplitting: { groups: groupsOf(folder) },
    // Documentation is in the declarations and the source maps; here it would only slow down the start.
    comments: { jsdoc: false },
  });
  await build.close();
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
