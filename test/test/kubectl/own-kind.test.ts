import { fileURLToPath } from 'node:url';
import { kubectlTestWith } from '../../src/kubectl-cluster.ts';

const module = fileURLToPath(new URL('../../../../examples/own-kind/dist/src/backup.js', import.meta.url));
const test = kubectlTestWith(['--kinds', module]);

const backup = (name: string, spec: Record<string, unknown>): { input: string } => ({
  input: JSON.stringify({ apiVersion: 'ops.example.com/v1', kind: 'Backup', metadata: { name }, spec }),
});

test("a team's own kind is discovered, explained, validated, defaulted, patched, watched and shown as a table", async (t) => {
  const { kubectl } = t.context;
  t.regex(
    await kubectl.run(['api-resources', '--api-group=ops.example.com']),
    /^backups\s+ops\.example\.com\/v1\s+true\s+Backup$/m,
  );
  t.regex(await kubectl.run(['explain', 'backups.spec']), /keep\s+<integer>[\s\S]*How many copies are kept/);

  const watch = kubectl.follow(['get', 'backups', '-w', '--output-watch-events']);
  t.teardown(() => watch.stop());
  await kubectl.run(['apply', '-f', '-'], backup('nightly', { database: 'orders' }));
  await watch.waitFor(/^ADDED\s+nightly\s+orders\s+7/);
  t.regex(await kubectl.run(['apply', '-f', '-'], backup('nightly', { database: 'orders' })), /unchanged/);
  await kubectl.run(['apply', '-f', '-'], backup('nightly', { database: 'orders', keep: 30 }));
  await watch.waitFor(/^MODIFIED\s+nightly\s+orders\s+30/);

  t.regex(await kubectl.run(['get', 'backups']), /^NAME\s+DATABASE\s+KEEP\nnightly\s+orders\s+30\n$/);
  const invalid = await kubectl.try(['apply', '-f', '-'], backup('broken', { database: '', keep: 400 }));
  t.regex(invalid.stderr, /The Backup "broken" is invalid/);
  t.regex(invalid.stderr, /spec\.keep: Invalid value: 400/);
  t.regex(
    (await kubectl.try(['create', '-f', '-'], backup('typo', { database: 'x', kep: 1 }))).stderr,
    /unknown field "spec\.kep"/,
  );
  await kubectl.run(['delete', 'backup', 'nightly']);
  await watch.waitFor(/^DELETED\s+nightly/);
});
