import { type ContainerRuntime, RuntimeError } from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import { type Answer, answer } from './answer.ts';

/** Version of the protocol that clients give and get in the call of that name; it has always been this. */
const protocolVersion = '0.1.0';

/** The calls about the runtime as a whole, and those that the service refuses. */
export function runtimeAnswers(runtime: ContainerRuntime): readonly Answer[] {
  return [
    answer(Calls.version, async (_, signal) => {
      const { runtimeName, runtimeVersion } = await runtime.version({ signal });
      return { version: protocolVersion, runtimeName, runtimeVersion, runtimeApiVersion: 'v1' };
    }),
    answer(Calls.status, async (_, signal) => ({ status: await runtime.status({ signal }) })),
    answer(Calls.updateRuntimeConfig, async ({ runtimeConfig }, signal) => {
      const podCidr = runtimeConfig?.networkConfig?.podCidr;
      await runtime.updateConfig?.(podCidr ? { podCidr } : {}, { signal });
      return {};
    }),
    ...[Calls.exec, Calls.attach, Calls.portForward].map((call) => refused(call)),
  ];
}

/** Streams are had from the servers of the agent, which ask who is there. */
function refused({ service, name }: Pick<Answer, 'service' | 'name'>): Answer {
  const reply = async () => {
    const way = name === 'Exec' ? 'ExecSync (crictl exec --sync), or ' : '';
    throw new RuntimeError('Unsupported', `${name}: this service has no streams; use ${way}the agent's own ${name}`);
  };
  return { service, name, reply };
}
