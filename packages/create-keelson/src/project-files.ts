import type { ProjectChoices } from './choices.ts';
import { sourceFiles } from './source-files.ts';

/** The value of `storage` in keelson.yaml, and the package of the adapter where it is not a part of keelson. */
const stores = {
  lmdb: { url: 'lmdb:./.keelson/store', adapter: undefined },
  memory: { url: 'memory:', adapter: undefined },
  postgres: { url: 'postgres://keelson:keelson@127.0.0.1:5432/keelson', adapter: '@keelson/storage-postgres' },
  etcd: { url: 'etcd://127.0.0.1:2379', adapter: '@keelson/storage-etcd3' },
} as const;

/** The version of Keelson that the project uses. */
export interface Versions {
  readonly keelson: string;
  readonly typescript: string;
  readonly nodeTypes: string;
}

/** All files of a project by their paths, with `/` between folders. */
export function projectFiles(choices: ProjectChoices, versions: Versions): ReadonlyMap<string, string> {
  return new Map([
    ['package.json', manifest(choices, versions)],
    ['tsconfig.json', compilerOptions],
    ['keelson.yaml', config(choices)],
    ['dev.mjs', devScript],
    ['.gitignore', 'node_modules/\ndist/\n.keelson/\n'],
    ...choices.kinds.flatMap((kind) => [...sourceFiles(choices, kind)]),
    ['README.md', readme(choices)],
    ...(choices.docker ? dockerFiles(choices) : []),
  ]);
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

function manifest({ name, storage, controller }: ProjectChoices, versions: Versions): string {
  const { adapter } = stores[storage];
  const kubectl = 'kubectl --kubeconfig .keelson/kubeconfig';
  const range = `^${versions.keelson}`;
  return json({
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: { node: '>=20.19' },
    scripts: {
      build: 'tsc',
      test: 'tsc && node --test dist/test/*.test.js',
      dev: 'tsc && node dev.mjs',
      start: 'keelson serve --config keelson.yaml',
      sample: `${kubectl} apply -f manifests && ${kubectl} get -f manifests`,
    },
    dependencies: {
      ...(controller ? { '@keelson/controller-kit': range } : {}),
      ...(controller ? { '@keelson/kinds': range } : {}),
      ...(adapter === undefined ? {} : { [adapter]: range }),
      keelson: range,
    },
    devDependencies: {
      '@keelson/testing': range,
      '@types/node': `^${versions.nodeTypes}`,
      typescript: `~${versions.typescript}`,
    },
  });
}

const compilerOptions = json({
  compilerOptions: {
    ...{ target: 'ES2023', lib: ['ES2023', 'ESNext.Disposable'], module: 'NodeNext', types: ['node'] },
    ...{ rootDir: '.', outDir: 'dist', noEmitOnError: true },
    ...{ rewriteRelativeImportExtensions: true, verbatimModuleSyntax: true, skipLibCheck: true },
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true },
  },
  include: ['src', 'test'],
});

function config({ kinds, controller, storage }: ProjectChoices): string {
  const modules = (suffix: string) => kinds.map(({ file }) => `./dist/src/${file}${suffix}.js`).join(', ');
  return `# All keys: https://github.com/keelson-dev/keelson/blob/main/docs/reference/command-line.md
kinds: [${modules('')}]
${controller ? `controllers: [api, ${modules('-controller')}]\n` : ''}storage: "${stores[storage].url}"
listen: 127.0.0.1:6443
`;
}

const devScript = `// Compiles the sources after every change and restarts the server. Its objects and certificates remain in .keelson.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const keelson = fileURLToPath(new URL('keelson.js', import.meta.resolve('keelson')));
// The compiler is a script that starts a program: both are in one process group, which is ended as a whole.
const group = process.platform !== 'win32';
const options = { stdio: ['ignore', 'inherit', 'inherit'], detached: group };
const start = (...args) => spawn(process.execPath, args, options);
const children = [
  start('node_modules/typescript/bin/tsc', '--watch', '--preserveWatchOutput'),
  start('--watch', keelson, 'serve', '--config', 'keelson.yaml', ...process.argv.slice(2)),
];
const stop = () => {
  for (const { pid, exitCode, signalCode } of children) {
    if (exitCode !== null || signalCode !== null) continue;
    try {
      process.kill(group ? -pid : pid, 'SIGTERM');
    } catch (error) {
      // The process has ended, and its event follows.
      if (error.code !== 'ESRCH') throw error;
    }
  }
};
for (const child of children) child.once('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
`;

function readme(choices: ProjectChoices): string {
  const { name, kinds, controller, docker, storage } = choices;
  const [first] = kinds;
  const files = kinds.flatMap(({ kind, file }) => [
    `| \`src/${file}.ts\` | the kind ${kind}: its schema, table and type |`,
    ...(controller ? [`| \`src/${file}-controller.ts\` | what happens for each ${kind} |`] : []),
    `| \`test/${file}.test.ts\` | tests on a plane in the test process |`,
    `| \`manifests/${file}.yaml\` | an object for kubectl |`,
  ]);
  const database = { lmdb: '', memory: '', postgres: 'PostgreSQL', etcd: 'etcd' }[storage];
  const note = docker ? ', for example `docker compose up database`' : '';
  return `# ${name}

A control plane with the ${kinds.length === 1 ? 'kind' : 'kinds'} ${kinds.map(({ kind }) => kind).join(', ')}, served with the
Kubernetes API by [Keelson](https://github.com/keelson-dev/keelson).

\`\`\`
npm test          # compiles, and runs the tests
npm run dev       # serves on https://127.0.0.1:6443, and restarts after each change of src
npm run sample    # in a second terminal: applies the manifests and shows the objects
\`\`\`

${database === '' ? '' : `\`keelson.yaml\` names the database; ${database} must run before \`npm run dev\`${note}.\n\n`}Any Kubernetes client can use the server, with the config \`.keelson/kubeconfig\`:

\`\`\`
kubectl --kubeconfig .keelson/kubeconfig get ${first?.plural} --watch
\`\`\`

| file | content |
|---|---|
${files.join('\n')}
| \`keelson.yaml\` | storage, address, kinds${controller ? ', controllers' : ''} |
| \`dev.mjs\` | the command \`npm run dev\` |
${docker ? `| \`Dockerfile\`, \`compose.yaml\` | the server as an image: \`docker compose up --build\` |\n` : ''}`;
}

function dockerFiles({ name, storage }: ProjectChoices): [string, string][] {
  const databases = {
    postgres: {
      url: 'postgres://keelson:keelson@database:5432/keelson',
      service: `  database:
    image: docker.io/library/postgres:17
    environment: { POSTGRES_USER: keelson, POSTGRES_PASSWORD: keelson, POSTGRES_DB: keelson }
    ports: ["127.0.0.1:5432:5432"]
    volumes: [database:/var/lib/postgresql/data]
    healthcheck: { test: [CMD, pg_isready, -U, keelson], interval: 2s, retries: 30 }
`,
    },
    etcd: {
      url: 'etcd://database:2379',
      service: `  database:
    image: gcr.io/etcd-development/etcd:v3.6.5
    command: [etcd, --data-dir=/data, --listen-client-urls=http://0.0.0.0:2379, --advertise-client-urls=http://database:2379]
    ports: ["127.0.0.1:2379:2379"]
    volumes: [database:/data]
    healthcheck: { test: [CMD, etcdctl, endpoint, health], interval: 2s, retries: 30 }
`,
    },
    lmdb: undefined,
    memory: undefined,
  };
  const database = databases[storage];
  const compose = `services:
  plane:
    build: .
    image: ${name}
    restart: unless-stopped
    ports: ["127.0.0.1:6443:6443"]
    volumes: [state:/data]
${database === undefined ? '' : `    environment: { KEELSON_STORAGE: "${database.url}" }\n    depends_on: { database: { condition: service_healthy } }\n${database.service}`}volumes:
  state:
${database === undefined ? '' : '  database:\n'}`;
  const storageLine = storage === 'lmdb' ? 'ENV KEELSON_STORAGE=lmdb:/data/store\n' : '';
  const dockerfile = `FROM docker.io/library/node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY src src
COPY test test
RUN npm run build && npm prune --omit=dev

FROM docker.io/library/node:24-slim
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist/src dist/src
COPY keelson.yaml ./
RUN mkdir /data && chown node /data
USER node
${storageLine}# The kubeconfig and the certificate authority are in the data directory: /data/kubeconfig.
VOLUME /data
EXPOSE 6443
CMD ["node_modules/.bin/keelson", "serve", "--config", "keelson.yaml", "--data", "/data", "--listen", "0.0.0.0:6443"]
`;
  return [
    ['Dockerfile', dockerfile],
    ['compose.yaml', compose],
    ['.dockerignore', 'node_modules\ndist\n.keelson\n'],
  ];
}
