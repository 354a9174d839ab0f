import { readFileSync } from 'node:fs';
import { copyFile, readdir, readFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Pod } from '@keelson/kinds';
import { findProgram, freePort, installPrograms } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { AgentMachine, type AgentProcess } from '../../src/agent-process.ts';
import { buildBusyboxImages } from '../../src/busybox-image.ts';
import { temporaryDirectory } from '../../src/keelson-process.ts';

const waitMs = 60_000;
const image = 'registry.test/busybox:1';
const lacking = process.getuid?.() === 0 ? installPrograms(['runc', 'busybox'], ['runc', 'busybox-static']) : ['root'];
const real = lacking.length > 0 ? test.skip : test;
const needs = lacking.length > 0 ? ` [not run, there is no ${lacking.join(', ')}]` : '';

const within = <T>(agent: AgentProcess, probe: () => Promise<T | undefined | false>) =>
  eventually(probe, waitMs).catch((error: Error) => {
    throw new Error(`${error.message}; output of the agent: ${agent.stderr()}`, { cause: error.cause });
  });

/** False also for a zombie process. */
const isThere = (pid: number) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !['Z', 'X'].includes(stat.charAt(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
};

/**
 * A pod that sleeps for so many seconds, a number by which its process is found; it is ready when a command confirms
 * so.
 */
const sleeper = (seconds: number): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'sleeper' },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['/bin/busybox', 'sleep', String(seconds)],
          readinessProbe: { exec: { command: ['/bin/busybox', 'true'] }, periodSeconds: 1, timeoutSeconds: 20 },
        },
      ],
    },
  }) as Pod;

/** The process id on the host: containers have a PID namespace of their own. */
async function pidOfSleep(seconds: number): Promise<number | undefined> {
  for (const name of await readdir('/proc')) {
    const words = /^\d+$/.test(name) ? await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '') : '';
    if (words === `/bin/busybox\0sleep\0${seconds}\0`) return Number(name);
  }
  return undefined;
}

const supervisorPid = async ({ dir }: AgentMachine) =>
  Number(await readFile(join(dir, 'root/supervisor/pid'), 'utf8').catch(() => '0'));

async function machine(t: ExecutionContext, words: readonly string[]): Promise<AgentMachine> {
  t.timeout(240_000);
  const dir = await temporaryDirectory();
  const made = await AgentMachine.create(dir, 'n1', words, '');
  t.teardown(async () => {
    const pid = await supervisorPid(made);
    try {
      await made.clear();
    } finally {
      if (pid > 0 && isThere(pid)) process.kill(pid, 'SIGKILL');
    }
  });
  return made;
}

async function pod(agent: AgentProcess) {
  const [found] = await agent.pods();
  const status = found?.status?.containerStatuses?.[0];
  return { ready: status?.ready === true, restarts: status?.restartCount, containerId: status?.containerID };
}

const isReady = (agent: AgentProcess, restarts: number) =>
  within(agent, async () => {
    const now = await pod(agent);
    return now.ready && now.restarts === restarts;
  });

/** The response to a client without a certificate. */
function askAsStranger(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(`https://127.0.0.1:${port}/`, { rejectUnauthorized: false, agent: false }, (answer) =>
      resolve(text(answer)),
    );
    request.once('error', reject);
  });
}

real(
  `runtime-b: pods run in a supervisor that outlives agents and is replaced when it dies or its options change${needs}`,
  async (t) => {
    const port = await freePort();
    const runtimeB = ['--container-runtime=runtime-b', `--runtime-b-api-endpoint=localhost:${port}`];
    const here = await machine(t, runtimeB);
    buildBusyboxImages(join(here.dir, 'image'), join(here.dir, 'root', 'images'), [{ reference: image }]);
    const seconds = 1_000_000 + port;
    const first = here.start();
    await here.drop('sleeper.json', JSON.stringify(sleeper(seconds)));
    await isReady(first, 0);
    t.regex((await pod(first)).containerId ?? '', /^runc:\/\//);
    const sleep = await pidOfSleep(seconds);
    const supervisor = await supervisorPid(here);
    t.true(isThere(supervisor));
    if (sleep === undefined) throw new Error('the container has no process');

    await first.kill();
    t.true(isThere(supervisor) && isThere(sleep), 'both outlive the agent');
    t.is(
      await askAsStranger(port),
      'the client certificate is not the pinned certificate: the client presented no certificate\n',
    );
    const second = here.start();
    await isReady(second, 0);
    t.regex(second.stderr(), /supervisor already runs/);
    t.notRegex(second.stderr(), /supervisor started/);
    t.is(await supervisorPid(here), supervisor);
    t.is(await pidOfSleep(seconds), sleep);

    process.kill(supervisor, 'SIGKILL');
    await within(second, async () => /supervisor connection lost.*supervisor started/s.test(second.stderr()));
    const restarted = await supervisorPid(here);
    t.not(restarted, supervisor);
    t.true(isThere(sleep), 'the container outlives the supervisor');
    process.kill(sleep, 'SIGKILL');
    await isReady(second, 1);
    const sleepAgain = (await pidOfSleep(seconds)) ?? 0;

    const other = await AgentMachine.create(await temporaryDirectory(), 'n2', runtimeB, '');
    const refused = other.start();
    t.is(await refused.exited, 1, refused.stderr());
    t.regex(
      refused.stderr(),
      new RegExp(`127.0.0.1:${port} is used by the supervisor of another agent, which has another --root-dir`),
    );
    await other.clear();

    t.is(await second.stop(), 0, second.stderr());
    t.true(isThere(restarted) && isThere(sleepAgain));
    const copy = join(here.dir, 'my-runc');
    await copyFile(findProgram('runc') ?? '', copy);
    const changed = [
      '--container-runtime=runtime-b',
      `--runtime-b-path=${copy}`,
      `--runtime-b-api-endpoint=[::1]:${await freePort()}`,
    ];
    const third = here.start(changed);
    await isReady(third, 1);
    t.regex(third.stderr(), /"reason":"its options have changed","msg":"supervisor replaced"/);
    t.false(isThere(restarted));
    t.is(await pidOfSleep(seconds), sleepAgain, 'the container continues to run');
    t.true((await readFile(join(here.dir, 'root/supervisor/running.json'), 'utf8')).includes(copy));
    t.is(await third.stop(), 0, third.stderr());

    const last = here.start([], 'oci');
    await isReady(last, 1);
    t.regex(last.stderr(), /supervisor of runtime-b ended, the options do not select one/);
    t.is(await supervisorPid(here), 0);
    t.is(await pidOfSleep(seconds), sleepAgain);
  },
);
