import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { buildGoTool, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { cleanEnvironment, memoryDirectory, removeDirectory, startKeelson } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

// An operator of controller-runtime, compiled from its published modules: test/tools/operator.

const operator = process.env['KEELSON_TEST_OPERATOR'] ?? buildGoTool('operator');
if (operator === undefined && process.env['CI'] !== undefined)
  throw new Error('no operator: install Go so that it can be built, or name one in KEELSON_TEST_OPERATOR');
const command = findKubectl();
const missing = operator === undefined ? 'Go is not installed' : command === undefined ? 'no kubectl' : undefined;
const withOperator = missing === undefined ? test : test.skip;
const definition = fileURLToPath(new URL('../../../tools/operator/gauges.yaml', import.meta.url));
const waitMs = 60_000;
/** A lease that was not released is taken over when its 120 s have passed. */
const takeoverMs = 150_000;

class RunningOperator {
  readonly #child: ChildProcess;
  #output = '';
  #log = '';

  constructor(t: ExecutionContext, kubeconfig: string) {
    this.#child = spawn(operator ?? '', [], { env: cleanEnvironment({ KUBECONFIG: kubeconfig }) });
    this.#child.stdout?.on('data', (chunk) => {
      this.#output += String(chunk);
    });
    this.#child.stderr?.on('data', (chunk) => {
      this.#log += String(chunk);
    });
    t.teardown(() => this.#child.kill('SIGKILL'));
  }

  get lines(): readonly string[] {
    return this.#output.trim() === '' ? [] : this.#output.trim().split('\n');
  }

  async reports(line: string, timeoutMs = waitMs): Promise<void> {
    await until(() => this.lines.includes(line), `the operator prints ${line}`, timeoutMs).catch((error: unknown) => {
      throw new Error(`${this.#output}\n${this.#log}`, { cause: error });
    });
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await until(() => this.#child.exitCode !== null || this.#child.signalCode !== null, 'the operator ends', waitMs);
    return this.#child.exitCode;
  }
}

withOperator(
  `an operator of controller-runtime reconciles each generation once, across a restart of the server, and hands over${missing === undefined ? '' : ` [not run, ${missing}]`}`,
  async (t) => {
    t.timeout(300_000);
    const data = await memoryDirectory();
    t.teardown(() => removeDirectory(data));
    let server = await startKeelson(data);
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    const change = (value: number) =>
      kubectl.run(['patch', 'gauge', 'g', '--type=merge', '-p', JSON.stringify({ spec: { value } })]);
    await kubectl.run(['apply', '-f', definition]);
    await kubectl.run(['wait', '--for=condition=Established', 'crd/gauges.gauges.example.com', '--timeout=60s']);
    const leader = new RunningOperator(t, server.kubeconfig);
    await leader.reports('leading');
    const follower = new RunningOperator(t, server.kubeconfig);
    const gauge = { apiVersion: 'gauges.example.com/v1', kind: 'Gauge', metadata: { name: 'g' }, spec: { value: 2 } };
    await kubectl.run(['create', '-f', '-'], { input: JSON.stringify(gauge) });
    await leader.reports('reconciled g 1');
    const made = await kubectl.json<{ metadata: object; status: { conditions: object[] } }>(['get', 'gauge', 'g']);
    t.like(made.metadata, { generation: 1, finalizers: ['gauges.example.com/release'] });
    t.like(made.status, { observedGeneration: 1, doubled: 4 });
    t.like(made.status.conditions[0], { type: 'Ready', status: 'True', reason: 'Read' });

    // Neither the finalizer, the status nor labels are a new generation.
    await kubectl.run(['label', 'gauge', 'g', 'room=cellar']);
    await kubectl.run([
      'patch',
      'gauge',
      'g',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"doubled":5}}',
    ]);
    await change(3);
    await leader.reports('reconciled g 2');
    t.deepEqual(leader.lines, ['leading', 'reconciled g 1', 'reconciled g 2']);

    t.is(await server.stop(), 0, server.output().stderr);
    server = await startKeelson(data, ['--listen', new URL(server.url).host]);
    await change(4);
    await leader.reports('reconciled g 3');
    t.deepEqual(leader.lines, ['leading', 'reconciled g 1', 'reconciled g 2', 'reconciled g 3']);

    t.deepEqual(follower.lines, []);
    // client-go does not release the lease when its renewal is under way at the same time, so the leader is stopped
    // right after a renewal.
    const renewals = kubectl.follow(['get', 'lease', 'gauges.example.com', '--watch-only', '-o', 'name']);
    t.teardown(() => renewals.stop());
    await renewals.waitFor(/^lease/);
    t.is(await leader.stop(), 0);
    await renewals.stop();
    await follower.reports('leading', takeoverMs);
    await follower.reports('reconciled g 3');
    const { metadata } = await kubectl.json<{ metadata: { uid: string } }>(['get', 'configmap', 'g']);
    await kubectl.run(['delete', 'configmap', 'g']);
    await until(
      async () => {
        const again = await kubectl.json<{ metadata: { uid: string } }>(['get', 'configmap', 'g']);
        return again.metadata.uid !== metadata.uid;
      },
      'the operator restores what it owns',
      waitMs,
    );
    await kubectl.run(['delete', 'gauge', 'g', '--timeout=60s']);
    await follower.reports('released g');
    await kubectl.run(['wait', '--for=delete', 'configmap/g', '--timeout=60s']);
    t.is(await follower.stop(), 0);
    t.is(await server.stop(), 0, server.output().stderr);
  },
);
