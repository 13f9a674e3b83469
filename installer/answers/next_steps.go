package answers

import "slipway/fault"

// nextStep words a kind of next step.
type nextStep struct {
	before   string   // in front of the error's own text
	then     string   // what to do, in sentences
	next     []string // the command that does it, without this program's name; nil when a person must act first
	verbatim bool     // the text begins with a name, which keeps its spelling
}

const (
	repeat      = "Run the same command again."
	moveAway    = "Move it away and run the same command again; slipway does not overwrite what it did not make."
	waitForIt   = "Wait for it to end, then run the same command again."
	otherPort   = "or stop that program yourself; slipway never moves to another port by itself."
	repeatAfter = "then run the same command again."
)

// steps are the words of every step. A test holds that none is missing.
var steps = map[fault.Step]nextStep{
	"":                   {},
	fault.AsTheTextSays:  {verbatim: true},
	fault.NothingDone:    {then: "Nothing was done."},
	fault.Repeat:         {then: repeat},
	fault.Resume:         {then: "Your progress is saved. To continue, run the same command again."},
	fault.RepeatFixed:    {then: "No wrong file was installed. " + repeat},
	fault.GetAccess:      {then: "Then run the same command again; what has arrived is kept."},
	fault.GetAccessFirst: {then: "Then run the same command again; nothing was changed."},
	fault.WaitForSlipway: {then: waitForIt, next: []string{"status"}},
	fault.WaitForProgram: {then: waitForIt},
	fault.SetAsideJournal: {
		then: "Nothing was done. The files themselves are checked by their hashes, so setting the journal aside " +
			"loses nothing: add --set-aside-journal.",
		next: []string{"setup", "--set-aside-journal"},
	},
	fault.RewriteSettings: {
		then: "Set-up chooses again, writes them, and sets the damaged file aside.",
		next: []string{"setup"},
	},
	fault.RewriteReceipt: {
		then: "Nothing was done. Set-up sets the damaged file aside and writes a new one.",
		next: []string{"setup"},
	},
	fault.RewriteLock: {
		then: "Nothing was done. Set-up writes the file again.",
		next: []string{"setup"},
	},
	fault.OtherPort:    {then: "Choose another port with --port, " + otherPort},
	fault.OtherMonitor: {then: "Choose another port for the monitor with --monitor-port, " + otherPort},
	fault.StopOtherHome: {then: "Choose another port with --port, or stop that server.", next: []string{
		"down", "--home"}},
	fault.NameHome:      {then: "If your home is another folder, name it with --home."},
	fault.OtherHome:     {then: "Nothing was done. Choose another folder with --home."},
	fault.MoveAway:      {then: moveAway},
	fault.MoveAwayFirst: {then: "Nothing was done. " + moveAway},
	fault.MoveObstacle:  {before: "Something that slipway did not put there is in the way: ", then: moveAway},
	fault.PlanAgain: {
		then: "Nothing was done. Make a new plan, show it to the person, and apply it with its own digest.",
		next: []string{"plan"},
	},
	fault.LookAgain: {then: "Look at what is there and make the plan again.", next: []string{"setup", "--dry-run"}},
	fault.FreeSpace: {
		before: "There is no space left on the volume of the home: ",
		then:   "What is whole is kept. Free some space and run the same command again.",
	},
	fault.CheckEndpoint: {then: "If the address is right, something else answers in its place: try another network, " +
		repeatAfter},
	fault.GoOnline:   {then: "Unset HF_HUB_OFFLINE, " + repeatAfter},
	fault.FixAddress: {then: "Nothing was asked. Set it right or unset it."},
	fault.LeaveRedirect: {then: "Nothing was taken from there. Look at the address that was asked and at the proxy " +
		"settings, or try from another network."},
	fault.Relock: {
		then: "A revision never changes, so one of them is wrong. Lock the model again and put the new lock in the " +
			"place of the old one.",
		next: []string{"models", "lock", "--replace"},
	},
	fault.ReplaceLock: {
		then: "Lock the model again and put the new lock in the place of the old one.",
		next: []string{"models", "lock", "--replace"},
	},
	fault.OfferEmbedded: {then: "Nothing was changed. When that is put right, run the same command again. Without " +
		"a network there is only the toy inside slipway: add --model pocket."},
	fault.OtherModel: {then: "Nothing was changed. Choose another model.", next: []string{"models", "list"}},
	fault.OtherRevision: {
		then: "Nothing was locked. Its makers must fix that in another revision; choose another model.",
		next: []string{"models", "list"},
	},
	fault.SetUpMoved: {
		then: "The model is used in place, so its folder must stay as it is. Set it up again.",
		next: []string{"setup"},
	},
	fault.OtherMirror: {then: "No wrong file was installed. Try later or from another mirror (HF_ENDPOINT)."},
	fault.OtherNetwork: {then: "Nothing was locked. Something between you and the model's makers serves different " +
		"bytes; try from another network."},
	fault.LeaveMirror: {
		then: "Nothing was done. Unset HF_ENDPOINT, so that the hub itself is asked, and run the same command again.",
	},
	fault.OtherTool:    {then: "Fetch that file with the hub's own tools, or choose another model."},
	fault.FetchRelease: {then: "Fetch the release again."},
	fault.InstallGo: {
		before: "The server cannot be built: ",
		then:   "Install Go 1.26 or newer (https://go.dev/dl/) and run slipway in its source.",
	},
	fault.FixBuild: {then: "The rest is kept. Fix the source or the toolchain and run the same command again."},
	fault.ReadLog:  {then: "The log has more lines.", next: []string{"logs"}},
	fault.FindServer: {
		then: "Nothing was stopped or removed. A server that is starting is recognised in a moment: try again. If " +
			"that does not help, find the process that has the file open, end it, and run the same command again.",
		next: []string{"status"},
	},
	fault.OtherProfile: {then: "Choose another profile or model.", next: []string{"models", "list"}},
	fault.CleanCache: {then: "Nothing was deleted. Look into the cache folder of the home, and move away what " +
		"slipway did not put there."},
	fault.SetUpFirst: {then: "Set it up first.", next: []string{"setup"}},
	fault.FixPermissions: {before: "The system does not allow it: ",
		then: "Choose another folder with --home, or fix its permissions."},
	fault.RunDoctor: {then: "This is a fault of slipway or of the system. The doctor may tell more.",
		next: []string{"doctor"}},

	fault.LeftAlone: {then: "It was left alone.", verbatim: true},
	fault.WaitUntilIdle: {
		then: "It was left alone. Wait until it is idle and run the same command again, or use another port " +
			"with --port.",
		verbatim: true,
	},
	fault.ThenRepeat:     {then: "Then run the same command again.", verbatim: true},
	fault.RestoreStopped: {then: "What was stopped is started again: slipway restore.", verbatim: true},

	fault.SetUp:      {then: "Set it up first.", next: []string{"setup"}},
	fault.SetUpAgain: {then: "Repair it first.", next: []string{"setup"}},
	fault.ShowPlan:   {then: "Nothing was done."}, // its flags are named by withFacts
	fault.ShowRemoval: {then: "Nothing was done. Look first with --dry-run, then add --yes.",
		next: []string{"uninstall", "--dry-run"}},
	fault.ShowGarbage: {then: "Nothing was done. Look at them first, then remove them with --yes.",
		next: []string{"gc", "--dry-run"}},
	fault.AddYes:         {then: "Nothing was deleted. Add --yes."},
	fault.Continue:       {then: "Your progress is saved. The same command continues and asks nothing again."},
	fault.Start:          {then: "Start it first.", next: []string{"up"}},
	fault.HaveItBack:     {then: "The next command brings it back now.", next: []string{}},
	fault.StartOrReadLog: {then: "Its log may say why.", next: []string{"logs"}},
	fault.ReadOurLog:     {then: "The log may tell more.", next: []string{"logs"}},
	fault.AskLess:        {then: "Ask something that it takes: shorter, or with a smaller --max-tokens."},
	fault.StopServer:     {then: "Nothing was deleted. Stop it first.", next: []string{"down"}},
	fault.StopServerFirst: {
		then: "Stop it, then start it again.",
		next: []string{"down"},
	},
	fault.StartJob:  {then: "A job begins with slipway apply --detach."},
	fault.WaitAgain: {then: "It continues; wait again.", next: []string{"wait", "--job"}},
	fault.RestoreByHand: {
		then: "Nothing was removed. Start it by hand or free its port, restore it, then uninstall again.",
		next: []string{"restore"},
	},
	fault.OtherFile:  {then: "Nothing was done. Name another file with --out."},
	fault.NameBundle: {then: "Name a bundle with --in."},
	fault.LockFirst: {
		then: "Nothing was done. Get it, then run the same command again.",
		next: []string{"models", "lock"},
	},
	fault.LockOrAccept: {then: "Nothing was done. Lock the model first (slipway models lock), or use the hashes of " +
		"the bundle with --accept-told."},
	fault.TrustedBundle: {
		then: "Nothing was imported: the bundle contradicts the lock that is known here, and a revision never " +
			"changes. Take the bundle from a source that you trust.",
	},

	fault.CopyBundle: {then: "What was whole is kept. Copy the bundle again and repeat."},

	fault.ReadHelp:        {then: "See slipway --help."},
	fault.GiveLengths:     {then: "Give --lengths."},
	fault.GiveFolder:      {then: "Give a folder with --out."},
	fault.CompareFinished: {then: "Compare finished runs."},
	fault.SameFlags:       {then: "Run both with the same flags."},

	fault.StartServer: {then: "Start that server, or look at the address: slipway status shows ours."},
	fault.WaitLonger:  {then: "A long prompt may take longer: --patience 2h waits longer."},
	fault.CheckProgram: {then: "Another program or a proxy may be at that address. An OpenAI-compatible address " +
		"usually ends with /v1."},
	fault.GiveKey:     {then: "Give the server's key by --key-env NAME or --key-file FILE."},
	fault.WaitForRoom: {then: "Run the same command again when the server has room."},
	fault.CheckModel: {then: "Look at the address and at --model. An OpenAI-compatible address usually " +
		"ends with /v1."},
	fault.ReadServerLog: {then: "The fault is the server's; its log may tell more."},
	fault.OtherRequest:  {then: "The server does not take this request."},
	fault.OtherRunName: {then: "Nothing was asked. Finish it with its own setup, choose another --name, or set it " +
		"aside with --restart."},
	fault.RestartRun: {then: "Set it aside with --restart, or choose another --name."},
}
