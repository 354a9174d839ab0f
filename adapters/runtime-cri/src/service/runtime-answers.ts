import type { ContainerRuntime } from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import { engineKey, formatEngineInfo } from '../engine-info.ts';
import { type Answer, answer } from './answer.ts';

/** Version of the protocol that clients give and get in the call of that name; it has always been this. */
const protocolVersion = '0.1.0';

/** The calls about the runtime as a whole. */
export function runtimeAnswers(runtime: ContainerRuntime): readonly Answer[] {
  return [
    answer(Calls.version, async (_, signal) => {
      const { runtimeName, runtimeVersion } = await runtime.version({ signal });
      return { version: protocolVersion, runtimeName, runtimeVersion, runtimeApiVersion: 'v1' };
    }),
    answer(Calls.status, async ({ verbose }, signal) => ({
      status: await runtime.status({ signal }),
      ...(verbose && { info: { [engineKey]: formatEngineInfo(runtime) } }),
    })),
    answer(Calls.updateRuntimeConfig, async ({ runtimeConfig }, signal) => {
      const podCidr = runtimeConfig?.networkConfig?.podCidr;
      await runtime.updateConfig?.(podCidr ? { podCidr } : {}, { signal });
      return {};
    }),
  ];
}
