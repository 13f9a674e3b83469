package mtl

// selector numbers a row of selectorTable.
type selector int

const (
	selName selector = iota
	selSupportsFamily
	selWorkingSet
	selMaxBufferLength
	selUnifiedMemory
	selResponds
	selNew
	selRelease
	selRetain
	selDrain
	selString
	selUTF8
	selDescription
	selSetLanguage
	selSetFastMath
	selNewLibrary
	selNewFunction
	selSetConstant
	selNewFunctionConstants
	selNewPipeline
	selMaxThreads
	selSimdWidth
	selNewBuffer
	selNewBufferNoCopy
	selContents
	selNewQueue
	selCommandBuffer
	selEncoder
	selSetPipeline
	selSetBuffers
	selDispatch
	selBarrier
	selEndEncoding
	selCommit
	selWait
	selStatus
	selError
	selGPUStart
	selGPUEnd
	selNewResidencySet
	selSetCapacity
	selAddAllocation
	selRequestResidency
	selAddResidencySet
	selRemoveResidencySet
	selEndResidency
	selectorCount
)

// selectorTable is every message that we send: its selector, and result and arguments as Apple declares them. A test
// checks each call against it.
var selectorTable = [selectorCount]struct{ name, result, arguments string }{
	selName:                 {"name", "id", ""},
	selSupportsFamily:       {"supportsFamily:", "BOOL", "NSInteger"},
	selWorkingSet:           {"recommendedMaxWorkingSetSize", "uint64", ""},
	selMaxBufferLength:      {"maxBufferLength", "NSUInteger", ""},
	selUnifiedMemory:        {"hasUnifiedMemory", "BOOL", ""},
	selResponds:             {"respondsToSelector:", "BOOL", "SEL"},
	selNew:                  {"new", "id", ""},
	selRelease:              {"release", "void", ""},
	selRetain:               {"retain", "id", ""},
	selDrain:                {"drain", "void", ""},
	selString:               {"stringWithUTF8String:", "id", "char*"},
	selUTF8:                 {"UTF8String", "char*", ""},
	selDescription:          {"localizedDescription", "id", ""},
	selSetLanguage:          {"setLanguageVersion:", "void", "NSUInteger"},
	selSetFastMath:          {"setFastMathEnabled:", "void", "BOOL"},
	selNewLibrary:           {"newLibraryWithSource:options:error:", "id", "id id id*"},
	selNewFunction:          {"newFunctionWithName:", "id", "id"},
	selSetConstant:          {"setConstantValue:type:atIndex:", "void", "void* NSUInteger NSUInteger"},
	selNewFunctionConstants: {"newFunctionWithName:constantValues:error:", "id", "id id id*"},
	selNewPipeline:          {"newComputePipelineStateWithFunction:error:", "id", "id id*"},
	selMaxThreads:           {"maxTotalThreadsPerThreadgroup", "NSUInteger", ""},
	selSimdWidth:            {"threadExecutionWidth", "NSUInteger", ""},
	selNewBuffer:            {"newBufferWithLength:options:", "id", "NSUInteger NSUInteger"},
	selNewBufferNoCopy: {"newBufferWithBytesNoCopy:length:options:deallocator:", "id",
		"void* NSUInteger NSUInteger block"},
	selContents:           {"contents", "void*", ""},
	selNewQueue:           {"newCommandQueue", "id", ""},
	selCommandBuffer:      {"commandBufferWithUnretainedReferences", "id", ""},
	selEncoder:            {"computeCommandEncoderWithDispatchType:", "id", "NSUInteger"},
	selSetPipeline:        {"setComputePipelineState:", "void", "id"},
	selSetBuffers:         {"setBuffers:offsets:withRange:", "void", "id* NSUInteger* NSRange"},
	selDispatch:           {"dispatchThreadgroups:threadsPerThreadgroup:", "void", "MTLSize MTLSize"},
	selBarrier:            {"memoryBarrierWithScope:", "void", "NSUInteger"},
	selEndEncoding:        {"endEncoding", "void", ""},
	selCommit:             {"commit", "void", ""},
	selWait:               {"waitUntilCompleted", "void", ""},
	selStatus:             {"status", "NSUInteger", ""},
	selError:              {"error", "id", ""},
	selGPUStart:           {"GPUStartTime", "double", ""},
	selGPUEnd:             {"GPUEndTime", "double", ""},
	selNewResidencySet:    {"newResidencySetWithDescriptor:error:", "id", "id id*"},
	selSetCapacity:        {"setInitialCapacity:", "void", "NSUInteger"},
	selAddAllocation:      {"addAllocation:", "void", "id"},
	selRequestResidency:   {"requestResidency", "void", ""},
	selAddResidencySet:    {"addResidencySet:", "void", "id"},
	selRemoveResidencySet: {"removeResidencySet:", "void", "id"},
	selEndResidency:       {"endResidency", "void", ""},
}
