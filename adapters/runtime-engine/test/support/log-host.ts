import { createEngineRuntime, type EngineRuntimeOptions } from '../../src/index.ts';

/**
 * A process with a runtime in it, to be killed. Arguments: options of the runtime, log directory, image, script. Prints
 * the container's id.
 */
const [, , options = '', logDirectory = '', image = '', script = ''] = process.argv;
const { runtime } = await createEngineRuntime(JSON.parse(options) as EngineRuntimeOptions);
const metadata = { name: 'writer', namespace: 'test', uid: 'uid', attempt: 0 };
const sandboxId = await runtime.runPodSandbox({ metadata, logDirectory });
const config = { metadata: { name: 'app', attempt: 0 }, logPath: 'app.log', image, command: ['/bin/sh', '-c', script] };
const id = await runtime.createContainer(sandboxId, config);
await runtime.startContainer(id);
process.stdout.write(`${id}\n`);
setInterval(() => {}, 1000);
