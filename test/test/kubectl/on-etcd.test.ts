import { kubectlTestOn } from '../../src/kubectl-cluster.ts';
import { registerDeleteScenarios } from '../../src/scenarios/kubectl-delete.ts';
import { registerReadScenarios } from '../../src/scenarios/kubectl-read.ts';
import { registerWriteScenarios } from '../../src/scenarios/kubectl-write.ts';
import { changedResources } from '../../src/scenarios/scope.ts';

// Two servers on one etcd; the connections of kubectl alternate between them.
const test = await kubectlTestOn('etcd');
registerReadScenarios(test);
registerWriteScenarios(test, changedResources);
registerDeleteScenarios(test, changedResources);
