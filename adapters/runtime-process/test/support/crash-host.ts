import { createProcessRuntime } from '../../src/index.ts';
import { shell } from './process-harness.ts';

/**
 * A process with a runtime in it, to be killed: makes a sandbox with the containers that the arguments describe and
 * prints their ids. Arguments: folder, then scripts.
 */
const [, , folder = '', ...scripts] = process.argv;
const { runtime } = await createProcessRuntime({ stateDirectory: `${folder}/state` });
const metadata = { name: 'pod', namespace: 'default', uid: 'uid', attempt: 0 };
const sandboxId = await runtime.runPodSandbox({ metadata, logDirectory: `${folder}/logs` });
const ids = await Promise.all(
  scripts.map(async (script, position) => {
    const config = { metadata: { name: `c${position}`, attempt: 0 }, logPath: `${position}.log`, ...shell(script) };
    const id = await runtime.createContainer(sandboxId, config);
    await runtime.startContainer(id);
    return id;
  }),
);
process.stdout.write(`${JSON.stringify({ sandboxId, ids })}\n`);
setInterval(() => {}, 1000);
