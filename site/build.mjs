// Builds the documentation site: every page of docs, and the reference of the public API. Links that lead nowhere fail
// the build.
//
//   npm run site
import { fileURLToPath } from 'node:url';
import { Application, Converter } from 'typedoc';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The packages that programs import. */
const packages = [
  'packages/keelson/src/index.ts',
  'packages/core/src/index.ts',
  'packages/core/src/runtime.ts',
  'packages/core/src/storage-adapter.ts',
  'packages/client/src/index.ts',
  'packages/controller-kit/src/index.ts',
  'packages/testing/src/index.ts',
  'packages/conformance/src/index.ts',
  'packages/container-runtime/src/index.ts',
];

/** Groups of pages by their folders, in the order of the navigation. */
const folders = {
  tutorial: 'Tutorial',
  'how-to': 'How-to guides',
  reference: 'Reference',
  explanation: 'Explanation',
  adr: 'Decisions',
};

const app = await Application.bootstrapWithPlugins({
  name: 'Keelson',
  entryPoints: packages.map((path) => root + path),
  tsconfig: `${root}site/tsconfig.json`,
  basePath: root,
  readme: `${root}docs/README.md`,
  projectDocuments: [
    `${root}docs/questions.md`,
    `${root}docs/*/**/*.md`,
    `${root}ARCHITECTURE.md`,
    `${root}CONTRIBUTING.md`,
  ],
  out: `${root}site/dist`,
  excludeExternals: true,
  excludePrivate: true,
  excludeInternal: true,
  // The compiler of the workspace checks the sources; this is an older version.
  skipErrorChecking: true,
  disableSources: true,
  groupOrder: [...Object.values(folders), 'Project', '*'],
  highlightLanguages: 'bash css docker go html ini javascript json make mermaid sql toml typescript yaml'.split(' '),
  navigation: { includeGroups: true },
  sort: ['documents-first', 'alphabetical-ignoring-documents'],
  searchInDocuments: true,
  validation: { invalidLink: true, notExported: false, notDocumented: false, invalidPath: true },
  blockTags: ['@public', '@experimental', '@param', '@returns', '@throws', '@typeParam', '@deprecated', '@example'],
  logLevel: 'Warn',
});

// A page is named by its heading, and grouped by its folder.
app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
  const [first] = document.content;
  const [heading = '', title] = /^# (.+)\n/.exec(first?.text ?? '') ?? [];
  const folder = document.name.split('/')[1];
  document.frontmatter.group = folders[folder] ?? 'Project';
  if (title === undefined) return;
  document.name = title.replaceAll('`', '');
  first.text = first.text.slice(heading.length);
});

const project = await app.convert();
if (project === undefined) process.exit(1);
await app.generateOutputs(project);
process.exitCode = app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0;
