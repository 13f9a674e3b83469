package fake

// Declarations are the methods that the fake answers, by selector, as Apple's headers declare them: in Objective-C's
// type encoding, the result, then "@:" for the object and the selector, then the arguments. v void, @ object, : SEL, B
// BOOL, q NSInteger, Q NSUInteger and uint64_t, d double, * char*, ^ a pointer to, @? block, {…} a struct by value;
// const, oneway and nullability are left out. Written from the headers of macOS 15, by hand, and by nothing derived
// from what package mtl sends: a test there compares the two.
var Declarations = map[string]string{
	// Foundation: NSObject.h, NSAutoreleasePool.h, NSString.h, NSError.h
	"new":                   "@@:",
	"retain":                "@@:",
	"release":               "v@:",
	"respondsToSelector:":   "B@::",
	"drain":                 "v@:",
	"stringWithUTF8String:": "@@:*",
	"UTF8String":            "*@:",
	"localizedDescription":  "@@:",

	// MTLDevice.h. MTLGPUFamily is an NSInteger; MTLResourceOptions an NSUInteger. The deallocator is a block of a
	// pointer and a length.
	"name":                         "@@:",
	"supportsFamily:":              "B@:q",
	"recommendedMaxWorkingSetSize": "Q@:",
	"maxBufferLength":              "Q@:",
	"hasUnifiedMemory":             "B@:",
	"newCommandQueue":              "@@:",
	"newBufferWithLength:options:": "@@:QQ",
	"newBufferWithBytesNoCopy:length:options:deallocator:": "@@:^vQQ@?",
	"newLibraryWithSource:options:error:":                  "@@:@@^@",
	"newComputePipelineStateWithFunction:error:":           "@@:@^@",
	"newResidencySetWithDescriptor:error:":                 "@@:@^@",

	// MTLLibrary.h, MTLFunctionConstantValues.h, MTLComputePipeline.h, MTLBuffer.h. MTLLanguageVersion and MTLDataType
	// are NSUIntegers.
	"setLanguageVersion:":                       "v@:Q",
	"setFastMathEnabled:":                       "v@:B",
	"newFunctionWithName:":                      "@@:@",
	"newFunctionWithName:constantValues:error:": "@@:@@^@",
	"setConstantValue:type:atIndex:":            "v@:^vQQ",
	"maxTotalThreadsPerThreadgroup":             "Q@:",
	"threadExecutionWidth":                      "Q@:",
	"contents":                                  "^v@:",

	// MTLCommandQueue.h, MTLCommandBuffer.h. MTLDispatchType and MTLCommandBufferStatus are NSUIntegers, CFTimeInterval
	// a double.
	"commandBufferWithUnretainedReferences":  "@@:",
	"addResidencySet:":                       "v@:@",
	"removeResidencySet:":                    "v@:@",
	"computeCommandEncoderWithDispatchType:": "@@:Q",
	"commit":                                 "v@:", // of a residency set too
	"waitUntilCompleted":                     "v@:",
	"status":                                 "Q@:",
	"error":                                  "@@:",
	"GPUStartTime":                           "d@:",
	"GPUEndTime":                             "d@:",

	// MTLCommandEncoder.h, MTLComputeCommandEncoder.h. MTLBarrierScope is an NSUInteger; MTLSize has no tag.
	"endEncoding":                                 "v@:",
	"setComputePipelineState:":                    "v@:@",
	"setBuffers:offsets:withRange:":               "v@:^@^Q{_NSRange=QQ}",
	"dispatchThreadgroups:threadsPerThreadgroup:": "v@:{?=QQQ}{?=QQQ}",
	"memoryBarrierWithScope:":                     "v@:Q",

	// MTLResidencySet.h
	"setInitialCapacity:": "v@:Q",
	"addAllocation:":      "v@:@",
	"requestResidency":    "v@:",
	"endResidency":        "v@:",
}
