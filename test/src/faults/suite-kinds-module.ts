export { clientSuiteKinds as default } from '@keelson/conformance';
